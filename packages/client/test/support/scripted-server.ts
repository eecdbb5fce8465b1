import { createServer, type IncomingHttpHeaders, type OutgoingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A real HTTP server that does nothing by itself: the test takes each request as it comes and plays the hub. */
export async function scriptedServer(): Promise<ScriptedServer> {
  const arrived: Visit[] = []
  const waiting: ((visit: Visit) => void)[] = []
  let visits = 0
  const server = createServer((request, response) => {
    const visit = visitOf(new URL(request.url ?? '/', 'http://hub'), request.headers, response)
    visits++
    const taker = waiting.shift()
    if (taker) taker(visit)
    else arrived.push(visit)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo

  async function next(): Promise<Visit> {
    return arrived.shift() ?? new Promise((resolve) => waiting.push(resolve))
  }

  async function heldBack(): Promise<Visit> {
    const visit = await next()
    visit.answer(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    return visit
  }

  return {
    url: `http://127.0.0.1:${port}/events/orders`,
    visits: () => visits,
    visit: next,
    async stream() {
      const visit = await heldBack()
      visit.write(':\n')
      return visit
    },
    heldBack,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function visitOf(url: URL, headers: IncomingHttpHeaders, response: ServerResponse): Visit {
  const gone = new Promise<void>((resolve) => {
    response.on('close', resolve)
  })
  return {
    url,
    headers,
    gone,
    answer(status, answered = {}) {
      response.writeHead(status, answered)
      response.flushHeaders()
    },
    send: (...lines) => response.write(`${lines.join('\n')}\n\n`),
    write: (bytes) => response.write(bytes),
    end: () => response.end(),
    cut: () => response.destroy(),
  }
}

export interface ScriptedServer {
  readonly url: string
  /** The next request, once it is there. */
  visit(): Promise<Visit>
  /** The next request, answered with the head of a stream and a first comment. */
  stream(): Promise<Visit>
  /** The same without the comment, as by a proxy that holds back the body. */
  heldBack(): Promise<Visit>
  /** Requests so far. */
  visits(): number
  close(): Promise<void>
}

export interface Visit {
  readonly url: URL
  readonly headers: IncomingHttpHeaders
  /** Resolves when the connection is over, whoever ended it. */
  readonly gone: Promise<void>
  answer(status: number, headers?: OutgoingHttpHeaders): void
  /** One block, given by its lines. */
  send(...lines: string[]): void
  write(bytes: string | Uint8Array): void
  /** Ends the response as a server does that has nothing more to send. */
  end(): void
  /** Breaks the connection in the middle. */
  cut(): void
}

/** The first block of a hub's stream (§4.4). */
export function hello(fields: Record<string, unknown> = {}, id?: string): string[] {
  const data = JSON.stringify({ resumed: false, requested: null, heartbeatMs: 25_000, connection: 'c_1', ...fields })
  return [...(id === undefined ? [] : [`id: ${id}`]), 'event: hello', `data: ${data}`]
}

export function message(id: string, data: unknown = id): string[] {
  return [`id: ${id}`, `data: ${JSON.stringify(data)}`]
}
