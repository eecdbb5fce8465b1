import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What a proxy does to the events of one stream. It is given each frame, and gives what goes on instead. */
export type Breakage = (frame: string, number: number, stream: BrokenStream) => string[]

export interface BrokenStream {
  readonly isReturn: boolean
  /** A frame that is held back. */
  kept?: string
}

export interface BreakingProxyOptions {
  /** @defaultValue passes every frame on */
  readonly breakage?: Breakage
  /** Headers of requests for streams that are taken away. */
  readonly stripped?: readonly string[]
  /** Whether the `id` of every frame is taken away. */
  readonly stripsIds?: boolean
  /** How many publishes are let through. The later ones are answered with 403. */
  readonly publishes?: number
}

/** A proxy in front of a hub that breaks the streams it carries. Everything else passes as it is. */
export async function openBreakingProxy(target: string, options: BreakingProxyOptions) {
  let publishesLeft = options.publishes ?? Number.POSITIVE_INFINITY
  const server = createServer((incoming, response) => {
    const { url: path = '', method = 'GET', headers } = incoming
    if (path.startsWith('/publish')) publishesLeft -= 1
    if (path.startsWith('/publish') && publishesLeft < 0) {
      incoming.resume()
      response.writeHead(403).end(JSON.stringify({ error: { code: 'forbidden', message: 'The quota is used up.' } }))
      return
    }
    const sent = { ...headers }
    for (const name of path.startsWith('/events') ? (options.stripped ?? []) : []) delete sent[name]
    const outgoing = request(target + path, { method, headers: sent, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      const isStream = answer.headers['content-type']?.startsWith('text/event-stream')
      if (isStream) passFrames(answer, response, headers['last-event-id'] !== undefined, options)
      else answer.pipe(response)
    })
    outgoing.on('error', () => response.destroy())
    response.on('close', () => outgoing.destroy())
    incoming.pipe(outgoing)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

function passFrames(
  answer: IncomingMessage,
  response: ServerResponse,
  isReturn: boolean,
  { breakage = (frame) => [frame], stripsIds = false }: BreakingProxyOptions,
): void {
  const stream: BrokenStream = { isReturn }
  let held = ''
  let count = 0
  answer.setEncoding('utf8').on('data', (text: string) => {
    const frames = (held + text).split('\n\n')
    held = frames.pop() ?? ''
    for (const frame of frames) {
      const isEvent = frame.startsWith('id: ') && !frame.includes('\nevent: ')
      const passed = isEvent ? breakage(frame, count++, stream) : [frame]
      for (const each of passed) response.write(`${stripsIds ? each.replace(/^id: .*\n/m, '') : each}\n\n`)
    }
  })
  answer.on('close', () => response.destroy())
}
