import { isReservedType } from '@rejoin/protocol'
import { withCursor } from './address.ts'
import { invalidOption } from './invalid-option.ts'
import { report } from './report.ts'
import type { RequestOptions } from './request.ts'
import type { Block, Transport, TransportParts } from './transport.ts'

/**
 * Reads a stream through the browser's own `EventSource`. It shows less than `fetch`: no status, no `retry:`, no comments,
 * and only events of types that it was told to listen for.
 *
 * Its own reconnecting is not used. It gives up for good on any status but 200, in some browsers when a name cannot be
 * resolved, and it would come back at a place of its own. So its first error ends the connection, and the next one starts
 * where the stream stands.
 */
export function eventSourceTransport({ address, options, eachType }: TransportParts): Transport {
  return ({ cursor }, sink, signal) =>
    new Promise((resolve) => {
      refuseHeaders(options)
      const url = cursor === null ? new URL(address) : withCursor(address, cursor)
      url.searchParams.set('heartbeat', 'event')
      const source = new EventSource(url, { withCredentials: options.credentials === 'include' })
      // What arrives while a handler has to be waited for; this transport cannot be told to read slower.
      let busy: Promise<void> | undefined
      let held = 0

      source.onopen = () => sink.tell({ type: 'answered', status: 200, isEventStream: true, retryAfterMs: 0 })
      source.onerror = end
      signal.addEventListener('abort', end)
      for (const type of protocolTypes) source.addEventListener(type, take)
      // Under the reserved names a browser sends events of its own.
      eachType((type) => {
        if (!isReservedType(type)) source.addEventListener(type, take)
      }, signal)

      function take({ type, data, lastEventId: id }: MessageEvent<string>): void {
        sink.tell({ type: 'bytes' })
        const block: Block = { id, type, data }
        if (!busy) {
          waitFor(sink.receive(block))
        } else if (held < maxHeld) {
          held++
          waitFor(
            busy.then(() => {
              held--
              return sink.receive(block)
            }),
          )
        } else {
          end()
        }
      }

      function waitFor(wait: Promise<void> | undefined): void {
        busy = wait
        void wait?.then(() => {
          if (busy === wait) busy = undefined
        })
      }

      function end(): void {
        source.close()
        resolve()
      }
    })
}

/** Without what the user wants sent, a server would answer as if to somebody else. */
function refuseHeaders({ headers, token }: RequestOptions): void {
  if (!headers && !token) return
  const error = invalidOption(
    "'event-source' sends no headers and no token. Leave it out of transports, or use cookies.",
  )
  report(error)
  throw error
}

const protocolTypes = ['hello', 'sync-required', 'checkpoint', 'close', 'heartbeat'] as const

/** Blocks; more are not lost, but asked for again when there is room. */
const maxHeld = 1000
