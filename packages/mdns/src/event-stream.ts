import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Hub, StreamFrame } from '@rejoin/hub'
import type { Admitted, Cancel } from '@rejoin/hub/internal'
import { connectionOf, cut, onceClosing, onceGone } from '@rejoin/hub/internal'
import {
  type CloseReason,
  encodeCheckpoint,
  encodeClose,
  encodeEvent,
  encodeHeartbeat,
  encodeRetry,
  isReservedType,
} from '@rejoin/protocol'
import type { TakenBrowse } from './browses.ts'
import type { KnownFact } from './feed.ts'
import type { Timing } from './timing.ts'

export interface EventStream {
  readonly hub: Hub
  readonly timing: Timing
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly headers: Readonly<Record<string, string>>
  readonly reader: Admitted
  /** The browse to read. It is released when the stream ends. */
  readonly taken: TakenBrowse
  /** The time without an event after which the stream ends; Infinity for never. */
  readonly idleMs: number
}

/**
 * Serves one reader: `hello`, then for a reader without a cursor the services that are there, then each change.
 *
 * The services come with the ids of their events, oldest first. A `checkpoint` after them moves the cursor to the
 * position of the stream; `hello` then has no id. A reader that is cut among the services resumes after the last one
 * that it got, and gets the others.
 */
export function streamEvents({ hub, timing, request, response, headers, reader, taken, idleMs }: EventStream): void {
  const over = new AbortController()
  // This stream has heartbeats of its own. As events, those of the hub would come in addition.
  const { heartbeat: form, ...joined } = reader.request
  const heartbeat = form === 'event' ? encodeEvent({ type: 'heartbeat', data: '{}' }) : encodeHeartbeat()
  let heartbeatMs = 25_000
  let cancelIdle: Cancel = () => undefined
  let cancelHeartbeat: Cancel = () => undefined
  const stopWatching = onceClosing(request.socket, () => close('drain'))
  onceGone(request, response, leave)
  response.writeHead(200, headers)
  response.flushHeaders()
  idle()
  beat()
  void serve().catch((cause) => {
    if (over.signal.aborted) return
    hub.port.failed(cause)
    response.destroy()
  })

  async function serve(): Promise<void> {
    const { frames, known } = await taken.feed.join(joined, { signal: over.signal })
    for (let next = await frames.next(); !next.done; next = await frames.next()) {
      const frame = next.value
      if (frame.type === 'hello') heartbeatMs = longestSilence(frame) ?? heartbeatMs
      const isGreeting = frame.type === 'hello' && known.length > 0
      if (isGreeting) await greet(frame, known)
      else await send(textOf(frame))
      if (isGreeting || !isReservedType(frame.type)) idle()
    }
    if (!over.signal.aborted) end()
    leave()
  }

  /** Sends `hello`, the services that are there, and a `checkpoint` with the cursor from which the stream goes on. */
  async function greet(hello: StreamFrame, known: readonly KnownFact[]): Promise<void> {
    // Without the id: a reader that is cut right after `hello` would resume at the head, and never get these services.
    let text = textOf({ ...hello, id: null })
    for (const { id, fact } of known) {
      text += encodeEvent({ id, type: fact.event, data: withId(id, JSON.stringify(fact.service)) })
      if (text.length < pieceLength) continue
      await send(text)
      text = ''
    }
    await send(text + (hello.id === null ? '' : encodeCheckpoint({ id: hello.id })))
  }

  /** Resolves when there is room for more, or the stream has ended. */
  async function send(text: string): Promise<void> {
    if (over.signal.aborted) return
    const hasRoom = response.write(text)
    beat()
    if (!hasRoom) await drained()
  }

  /** The text of a frame. The data of an event also holds its id, for readers that see only the data. */
  function textOf({ id, type, data }: StreamFrame): string {
    if (type === 'hello') return encodeRetry(retryMs()) + encodeEvent({ type, data, ...(id === null ? {} : { id }) })
    if (type === 'close') return encodeRetry(retryMs()) + encodeEvent({ type, data })
    if (id === null) return encodeEvent({ type, data })
    return encodeEvent({ id, type, data: isReservedType(type) ? data : withId(id, data) })
  }

  /** Adds up to a fifth at random, so that readers that were cut together do not come back together. */
  function retryMs(): number {
    return Math.round(hub.admin.retryMs * (1 + 0.2 * timing.random()))
  }

  /** Resolves when the reader has taken the bytes that wait for it, or has gone. */
  function drained(): Promise<void> {
    const stopWatching = watchReader()
    return new Promise((resolve) => {
      const goOn = () => {
        response.off('drain', goOn).off('close', goOn)
        stopWatching()
        resolve()
      }
      response.on('drain', goOn).on('close', goOn)
    })
  }

  /** Cuts a reader that reads nothing for longer than the hub allows its own readers. */
  function watchReader(): () => void {
    const reader = {
      get pending() {
        return response.writableLength
      },
      evict: () => cut(response),
    }
    const entry = hub.port.memory.answers.send(reader, connectionOf(response))
    return () => entry.close()
  }

  /** Starts the idle time again. When it is over, the stream closes. */
  function idle(): void {
    cancelIdle()
    if (Number.isFinite(idleMs) && !over.signal.aborted) cancelIdle = timing.after(idleMs, () => close('finished'))
  }

  function beat(): void {
    cancelHeartbeat()
    if (over.signal.aborted) return
    cancelHeartbeat = timing.after(heartbeatMs, () => {
      if (!response.writableNeedDrain) response.write(heartbeat)
      beat()
    })
  }

  function close(reason: CloseReason): void {
    if (over.signal.aborted) return
    end(encodeClose({ reason }, { retryMs: retryMs() }))
    leave()
  }

  function end(text = ''): void {
    response.once('close', watchReader())
    response.end(text)
  }

  function leave(): void {
    if (over.signal.aborted) return
    over.abort()
    stopWatching()
    cancelIdle()
    cancelHeartbeat()
    taken.release()
  }
}

// Sends a long greeting in pieces of this many characters. A network announces up to 2,000 services of any length, and
// a reader may be slow.
const pieceLength = 64 * 1024

/** @param data - the text of a JSON object that is not empty */
function withId(id: string, data: string): string {
  return `{"id":${JSON.stringify(id)},${data.slice(1)}`
}

/** The longest silence on the stream, as `hello` announces it. */
function longestSilence({ data }: StreamFrame): number | undefined {
  return (JSON.parse(data) as { heartbeatMs?: number }).heartbeatMs
}
