import { isReservedType } from '@rejoin/protocol'
import { invalidOption, requestAddress } from '../address.ts'
import { report } from '../handler-set.ts'
import { kindNews, offerNews } from '../handlers.ts'
import type { Block, Transport, TransportParts } from './transport.ts'

/**
 * Reads a stream through the browser's own `EventSource`. It shows less than `fetch`: no status, no `retry:`, no comments,
 * and only events of types that it was told to listen for. Where that is less than the user asks for, it refuses: another
 * transport has its turn then, and nothing is left out in silence.
 *
 * Its own reconnecting is not used. It gives up for good on any status but 200, in some browsers when a name cannot be
 * resolved, and it would come back with a cursor of its own. So its first error ends the connection, and the next one
 * starts where the stream stands. A connection that the browser gives up on, or three that never open, are a reason to use
 * the next transport, which can see what the server says.
 */
export function createTransport(...[address, options, , handlers]: TransportParts): Transport {
  return ({ clientId, generation: attempt, cursor }, sink, signal) =>
    new Promise((resolve) => {
      if (!globalThis.EventSource) return refuse('does not exist here')
      if (options.headers || options.token) return refuse('sends no headers and no token')
      const url = requestAddress(address, { clientId, attempt, heartbeat: 'event' }, cursor)
      const source = new EventSource(url, { withCredentials: options.credentials === 'include' })
      // What arrives while a handler has to be waited for; this transport cannot be told to read slower.
      let busy: Promise<void> | undefined
      let held = 0
      // All data that a hub sends is JSON, but for text (§4.16).
      let isHub = false
      // How much an error speaks against this transport.
      let against = 1

      source.onopen = () => {
        against = 0
        sink.tell({ type: 'answered', status: 200, isStream: true, retryAfterMs: 0 })
      }
      source.onerror = () => {
        // Closed by the browser: a status, a type or an origin that it does not take, and does not show.
        if (source.readyState > 1) against = 3
        sink.tell({ type: 'ended', against })
        end()
      }
      signal.addEventListener('abort', end)
      for (const type of protocolTypes) source.addEventListener(type, take)
      // Under the reserved names a browser sends events of its own.
      signal.addEventListener('abort', handlers.on(kindNews, listen))
      for (const kind of ['message', ...handlers.kinds.keys()]) listen(kind)

      function listen(kind: string): void {
        if (kind === '*' || kind === offerNews) {
          refuse('gets only types with a handler')
        } else if (!isReservedType(kind)) {
          source.addEventListener(kind, take)
        }
      }

      function take({ type, data, lastEventId: id }: MessageEvent<string>): void {
        // What has to wait does not reach the user yet, and so is no reason to show that all is well.
        if (!busy) sink.tell({ type: 'bytes' })
        isHub ||= type === 'hello'
        const block: Block = { id, type, data, content: isHub && !isJson(data) ? 'text' : undefined }
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

      function refuse(why: string): void {
        if (signal.aborted) return
        report(invalidOption(`'event-source' ${why}. Give other transports.`))
        sink.tell({ type: 'unusable' })
      }
    })
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const protocolTypes = ['hello', 'sync-required', 'checkpoint', 'close', 'heartbeat'] as const

/** Blocks; more are not lost, but asked for again when there is room. */
const maxHeld = 1000
