import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * An HTTP proxy that waits for the end of a response before it passes it on, as proxies do that buffer, compress or scan.
 * A stream has no end, so of a stream nothing arrives.
 */
export async function openHoldingProxy({ port }: { readonly port: number }, holds: Holds): Promise<HoldingProxy> {
  let holding = false
  let held = 0
  const waiting = new Set<() => void>()
  const server = createServer((request, response) => {
    const { method, url, headers } = request
    const upstream = send({ host: '127.0.0.1', port, method, path: url, headers }, (answer) => {
      if (holding && isStream(answer)) hold(answer, response)
      else pass(answer, response)
    })
    upstream.on('error', () => response.destroy())
    response.on('close', () => upstream.destroy())
    request.pipe(upstream)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  function hold(answer: IncomingMessage, response: ServerResponse): void {
    answer.resume()
    if (holds === 'the body') {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      response.flushHeaders()
    }
    held += 1
    for (const check of waiting) check()
  }

  return {
    port: (server.address() as AddressInfo).port,
    hold() {
      holding = true
      server.closeAllConnections()
    },
    hasHeld: (streams) =>
      new Promise((resolve) => {
        const check = () => {
          if (held < streams) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        check()
      }),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

/** What does not arrive of a stream: all of it, or all but the head. */
export type Holds = 'everything' | 'the body'

export interface HoldingProxy {
  readonly port: number
  /** Cuts what passes, and holds back what follows. */
  hold(): void
  /** Resolves when so many streams have been held back. */
  hasHeld(streams: number): Promise<void>
  close(): Promise<void>
}

function isStream({ headers }: IncomingMessage): boolean {
  return headers['content-type']?.startsWith('text/event-stream') ?? false
}

function pass(answer: IncomingMessage, response: ServerResponse): void {
  response.writeHead(answer.statusCode ?? 502, answer.headers)
  response.flushHeaders()
  answer.on('error', () => response.destroy())
  answer.pipe(response)
}
