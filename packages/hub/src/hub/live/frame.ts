import { encodeEvent, type Position } from '@rejoin/protocol'
import type { LogEvent } from '../../log/contract.ts'
import { keptBytes } from './kept-bytes.ts'
import { keepUnheard } from './unheard-frames.ts'

/** An event as readers get it. It is encoded once for all of them, at the latest when its bytes are first asked for. */
export interface Frame {
  readonly position: Position
  readonly channel: string
  readonly type: string
  readonly bytes: Uint8Array
  /** The bytes that it keeps in memory, without the overhead that every frame has. */
  readonly size: number
  /** As in the log: the position of the channel's previous event, and when this event was appended. */
  readonly previous: Position
  readonly at: number
}

/** Frames of new events. `isHeard` tells whether a channel has live readers now. */
export function framesOf(
  events: readonly LogEvent[],
  isHeard: (channel: string) => boolean,
  idOf: (position: Position) => string,
): Frame[] {
  const unheard = events.filter(({ channel }) => !isHeard(channel))
  const kept = keepUnheard(unheard, idOf)
  if (kept.length === events.length) return kept
  let next = 0
  return events.map((event) => {
    return event === unheard[next] ? (kept[next++] as Frame) : encodeFrame(event, idOf(event.position))
  })
}

export function encodeFrame(event: LogEvent, id: string): Frame {
  const { position, channel, type, data, content, previous, at } = event
  const bytes = keptBytes(encodeEvent({ id, type, data, content }))
  return { position, channel, type, previous, at, bytes, size: bytes.length }
}

/**
 * The frames of a whole block, as views of one buffer. With a buffer for each frame, the engine would have many times as many
 * pieces of memory to keep count of.
 */
export function encodeFrames(events: readonly LogEvent[], idOf: (position: Position) => string): Frame[] {
  const texts = events.map(({ position, type, data, content }) =>
    encodeEvent({ id: idOf(position), type, data, content }),
  )
  const whole = texts.join('')
  const buffer = keptBytes(whole)
  const isAscii = buffer.length === whole.length
  let start = 0
  return events.map(({ position, channel, type, previous, at }, index) => {
    const text = texts[index] as string
    const end = start + (isAscii ? text.length : Buffer.byteLength(text))
    const bytes = buffer.subarray(start, end)
    start = end
    return { position, channel, type, previous, at, bytes, size: bytes.length }
  })
}

// Memory of a frame besides its bytes: the object, its position, its entries in lists, the header of the buffer. Measured with
// small events on Node 20.
const overhead = 400

export function costOf(frame: Frame): number {
  return frame.size + overhead
}
