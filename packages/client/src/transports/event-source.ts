import { reservedTypes } from '@rejoin/protocol'
import { invalidOption, requestAddress } from '../address.ts'
import { report } from '../handler-set.ts'
import { kindNews, offerNews } from '../handlers.ts'
import { isHello, readObject } from '../receiver.ts'
import type { Block, Transport, TransportParts } from './transport.ts'

/**
 * Reads a stream through the browser's own `EventSource`. It shows less than `fetch`: no status, no `retry:`, no
 * comments, and only events of types that it listens for. When the user asks for more than that, this transport
 * reports that it cannot be used: the next transport is used, and nothing is left out silently.
 *
 * The browser's own reconnecting is not used. It gives up for good on any status but 200, and in some browsers when a
 * name cannot be resolved, and it would return with its own cursor. So the first error ends the connection, and the
 * next connection starts at the cursor of the stream. When the browser gives up on a connection, or three never open,
 * the next transport is used, which can see what the server says.
 */
export function createTransport(...[address, options, , handlers]: TransportParts): Transport {
  return ({ clientId, generation: attempt, cursor }, sink, signal) =>
    new Promise((resolve) => {
      if (!globalThis.EventSource) return giveUp('does not exist here')
      if (options.headers || options.token) return giveUp('sends no headers and no token')
      const url = requestAddress(address, { clientId, attempt, heartbeat: 'event' }, cursor)
      const source = new EventSource(url, { withCredentials: options.credentials === 'include' })
      // Blocks that arrive while a handler is awaited: an `EventSource` cannot be told to read slower.
      let busy: Promise<void> | undefined
      let held = 0
      // A hub sends only JSON and text (§4.16), so data that is no JSON is text.
      let isHub = false
      // The weight of an error as a fault of this transport.
      let against = 1

      source.onopen = () => {
        against = 0
        sink.tell({ type: 'answered', status: 200, isStream: true, retryAfterMs: 0 })
      }
      source.onerror = (event) => {
        if (isOfServer(event)) return
        // The browser gave up: it does not accept the status, the type or the origin, and does not show which.
        if (source.readyState > 1) against = 3
        sink.tell({ type: 'ended', against })
        end()
      }
      signal.addEventListener('abort', end)
      for (const type of reservedTypes) source.addEventListener(type, take)
      signal.addEventListener('abort', handlers.on(kindNews, listen))
      for (const kind of ['message', ...handlers.kinds.keys()]) listen(kind)

      function listen(kind: string): void {
        if (kind === '*' || kind === offerNews) {
          giveUp('gets only types with a handler')
        } else {
          // A listener that is added twice is called once.
          source.addEventListener(kind, take)
        }
      }

      function take(event: MessageEvent<string>): void {
        if (!isOfServer(event)) return
        const { type, data, lastEventId: id } = event
        // A block that waits has not reached the user, so it does not show that the stream is alive.
        if (!busy) sink.tell({ type: 'bytes' })
        isHub ||= type === 'hello' && isHello(readObject(data))
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

      function giveUp(why: string): void {
        if (signal.aborted) return
        report(invalidOption(`'event-source' ${why}. Give other transports.`))
        sink.tell({ type: 'unusable' })
      }
    })
}

/** A browser dispatches its own events under the same names, without data. */
function isOfServer(event: Event): boolean {
  return 'data' in event
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** In blocks. With more, the connection ends, and the blocks are asked for again. */
const maxHeld = 1000
