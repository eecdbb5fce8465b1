import { once } from 'node:events'
import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { onTestFinished } from 'vitest'
import { type ServeOptions, type Serving, serve } from '../../src/serve.ts'

/** A server of the program on a free port, closed with the test. */
export async function serving(options: ServeOptions = {}): Promise<Serving> {
  const server = await serve({ port: 0, ...options })
  onTestFinished(() => server.close())
  return server
}

/** The address of a server that has gone. */
export async function nobody(): Promise<string> {
  const { url, close } = await serve({ port: 0 })
  await close()
  return url
}

export interface Sent {
  method?: string
  headers?: Record<string, string>
  body?: string
}

export interface Received {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

/** Sends a request whose `Host`, `Origin` and path are ours to choose, which `fetch` forbids, and reads the answer. */
export async function send(url: string, path: string, sent: Sent = {}): Promise<Received> {
  const response = await open(url, path, sent)
  let text = ''
  for await (const part of response.setEncoding('utf8')) text += part
  return { status: response.statusCode ?? 0, headers: response.headers, text }
}

/** The same, without reading the answer: for streams. It is let go with the test. */
export async function open(url: string, path: string, sent: Sent = {}): Promise<IncomingMessage> {
  const outgoing = begin(url, path, sent)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  // A reset in mid-stream is told to the request too; whoever reads the response learns of it there.
  outgoing.on('error', () => undefined)
  response.setEncoding('utf8')
  return response
}

/** Sends a request that is expected to be cut before its answer, and gives the error. */
export async function cutOff(url: string, path: string): Promise<NodeJS.ErrnoException> {
  const outgoing = begin(url, path, {})
  const [error] = await new Promise<unknown[]>((resolve, reject) => {
    outgoing.once('error', (error) => resolve([error]))
    outgoing.once('response', () => reject(new Error(`${path} was answered`)))
  })
  return error as NodeJS.ErrnoException
}

/** Reads a stream until the text has come. */
export async function until(stream: IncomingMessage, text: string): Promise<string> {
  let read = ''
  for await (const part of stream.iterator({ destroyOnReturn: false })) {
    read += part
    if (read.includes(text)) return read
  }
  throw new Error(`The stream ended without ${JSON.stringify(text)}: ${JSON.stringify(read)}`)
}

function begin(url: string, path: string, { method = 'GET', headers = {}, body }: Sent): ClientRequest {
  // A connection of its own for each request, so that a stream that is cut takes no other with it.
  const outgoing = request(url, { path, method, headers, agent: false })
  onTestFinished(() => void outgoing.destroy())
  return outgoing.end(body)
}
