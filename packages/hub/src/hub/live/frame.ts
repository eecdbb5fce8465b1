import { encodeEvent, type Position } from '@rejoin/protocol'
import type { LogEvent } from '../../log/contract.ts'
import { keptBytes } from './kept-bytes.ts'

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

/**
 * Frames of events that have no live reader now. A frame is encoded when a reader returns for it, which seldom happens.
 *
 * Until then, the texts lie together in one buffer. As strings, the garbage collector would move them, and a text that was cut
 * out of a large text would keep all of it in memory.
 */
function keepUnheard(events: readonly LogEvent[], idOf: (position: Position) => string): Frame[] {
  if (events.length === 0) return []
  const whole = events.length === 1 ? (events[0] as LogEvent).data : events.map(({ data }) => data).join('')
  const texts = keptBytes(whole)
  const isAscii = texts.length === whole.length
  const block = { texts, idOf }
  let start = 0
  return events.map((event) => {
    const end = start + (isAscii ? event.data.length : Buffer.byteLength(event.data))
    const frame = new UnheardFrame(event, block, start, end)
    start = end
    return frame
  })
}

interface Block {
  readonly texts: Buffer
  readonly idOf: (position: Position) => string
}

// Encoded, each line feed becomes `\ndata: `.
const bytesOfLineFeed = 7

class UnheardFrame implements Frame {
  readonly position: Position
  readonly channel: string
  readonly type: string
  readonly previous: Position
  /** Counts the text and the encoded bytes: the text stays in the shared buffer after it has been encoded. */
  readonly size: number
  readonly #block: Block
  readonly #start: number
  readonly #end: number
  /** `at`, less the time of the position. Mostly 0, which V8 keeps without an object of its own; a time would need one. */
  readonly #late: number
  readonly #content: LogEvent['content']
  #bytes: Uint8Array | undefined

  constructor(event: LogEvent, block: Block, start: number, end: number) {
    const { position, channel, type, data, content, previous, at } = event
    this.position = position
    this.channel = channel
    this.type = type
    this.previous = previous
    this.#late = at - position.ms
    this.#content = content
    this.size = (end - start) * (1 + (data.includes('\n') ? bytesOfLineFeed : 1))
    this.#block = block
    this.#start = start
    this.#end = end
  }

  get at(): number {
    return this.position.ms + this.#late
  }

  get bytes(): Uint8Array {
    this.#bytes ??= this.#encode()
    return this.#bytes
  }

  #encode(): Uint8Array {
    const { texts, idOf } = this.#block
    const data = texts.toString('utf8', this.#start, this.#end)
    return keptBytes(encodeEvent({ id: idOf(this.position), type: this.type, data, content: this.#content }))
  }
}
