import { encodeEvent, type Position } from '@rejoin/protocol'
import type { LogEvent } from '../../log/contract.ts'
import type { Frame } from './frame.ts'
import { keptBytes } from './kept-bytes.ts'

/**
 * Frames of events that nobody listens for at the moment. Each is encoded when somebody comes back for it, which for most
 * of them nobody does.
 *
 * Until then their texts lie together in one buffer. Kept as strings they would be moved by the engine's collector, and a
 * text that was cut out of a large one would keep all of it.
 */
export function keepUnheard(events: readonly LogEvent[], idOf: (position: Position) => string): Frame[] {
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

// On its way out, each line feed becomes `\ndata: `.
const bytesOfLineFeed = 7

class UnheardFrame implements Frame {
  readonly position: Position
  readonly channel: string
  readonly type: string
  readonly previous: Position
  /** Its text stays where it is when it has been encoded: others lie beside it. */
  readonly size: number
  readonly #block: Block
  readonly #start: number
  readonly #end: number
  /** How much later than its position says; mostly nothing, which takes no object of its own as a time does. */
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
