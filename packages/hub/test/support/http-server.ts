import { createServer, request as httpRequest, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect as connectSocket } from 'node:net'
import { createHub, type Hub, type HubOptions } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { type NodeHandlerOptions, nodeHandler } from '@rejoin/hub/node'
import { onTestFinished } from 'vitest'
import { parse, type Received } from './recorder.ts'

export interface TestServer {
  readonly hub: Hub
  readonly server: Server
  readonly port: number
  /** How many connections the server has open. */
  connections(): Promise<number>
  url(path: string): string
  /** Opens a stream with plain node:http, as a client that knows nothing of Rejoin would. */
  open(path: string, headers?: Record<string, string>): Promise<StreamReader>
  /** Sends bytes as they are and returns everything that comes back until the peer closes or `until` matches. */
  raw(bytes: string | Uint8Array, until: RegExp): Promise<string>
}

export interface StreamReader {
  readonly status: number
  readonly headers: NodeJS.Dict<string | string[]>
  readonly text: string
  readonly events: Received[]
  /** Resolves once the text matches; the test's own time limit is the bound. */
  waitFor(condition: (events: Received[], text: string) => boolean): Promise<void>
  readonly ended: Promise<void>
  cut(): void
}

/** A hub on a real server and a free port, closed when the test ends. */
export async function serveHub(
  options: Partial<HubOptions> = {},
  handler: NodeHandlerOptions = {},
): Promise<TestServer> {
  const hub = await createHub({ log: memoryLog(), ...options })
  return serveListener(hub, nodeHandler(hub, handler))
}

/** A hub behind whatever answers for it. */
export async function serveListener(hub: Hub, listener: RequestListener): Promise<TestServer> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  onTestFinished(async () => {
    await hub.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    hub,
    server,
    port,
    connections: () =>
      new Promise((resolve, reject) => {
        server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
      }),
    url: (path) => `http://127.0.0.1:${port}${path}`,
    open: (path, headers = {}) => openStream(port, path, headers),
    raw: (bytes, until) => exchange(port, bytes, until),
  }
}

export function openStream(port: number, path: string, headers: Record<string, string> = {}): Promise<StreamReader> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ port, path, headers, host: '127.0.0.1', agent: false }, (response) => {
      const waiting = new Set<() => void>()
      let text = ''
      response.setEncoding('utf8').on('data', (part) => {
        text += part
        for (const look of waiting) look()
      })
      const ended = new Promise<void>((done) => void response.on('close', () => done()))
      response.on('error', () => response.destroy())
      const reader: StreamReader = {
        status: response.statusCode ?? 0,
        headers: response.headers,
        get text() {
          return text
        },
        get events() {
          return parse(text).events
        },
        waitFor(condition) {
          return new Promise((done) => {
            const look = () => {
              if (!condition(reader.events, text)) return
              waiting.delete(look)
              done()
            }
            waiting.add(look)
            look()
          })
        },
        ended,
        cut: () => void request.destroy(),
      }
      resolve(reader)
    })
    request.on('error', reject)
    request.end()
  })
}

function exchange(port: number, bytes: string | Uint8Array, until: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connectSocket(port, '127.0.0.1', () => socket.write(bytes))
    socket.setEncoding('utf8').on('data', (part) => {
      text += part
      if (until.test(text)) socket.destroy()
    })
    socket.on('close', () => resolve(text))
    socket.on('error', reject)
  })
}
