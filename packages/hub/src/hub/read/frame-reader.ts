import { createParser } from '@rejoin/protocol'
import type { SharedBytes } from '../live/sink.ts'

/** One frame of a stream, as a reader inside the program is given it. */
export interface StreamFrame {
  /** The last id of the stream once this frame is counted, null while there was none: `lastEventId` of an `EventSource`. */
  readonly id: string | null
  readonly type: string
  readonly data: string
  /** `text` where the event was published as text; left out, `data` is the text of a JSON value (§4.16). */
  readonly content?: 'text'
  /** For a reader that asked to be shown it (§4.15): where the event was published. */
  readonly channel?: string
}

/**
 * Reads the frames of a session back from its bytes. They are the same bytes as everybody's: an encoding of their own would
 * be a second way to say the same thing.
 */
export function createFrameReader(onRetry?: (ms: number) => void): (bytes: SharedBytes) => StreamFrame[] {
  let frames: StreamFrame[] = []
  let fields: Pick<StreamFrame, 'channel' | 'content'> = {}
  const parser = createParser({
    maxEventLength: Number.POSITIVE_INFINITY,
    onEvent({ id, type, data }) {
      frames.push({ id: id === '' ? null : id, type, data, ...fields })
      fields = {}
    },
    onField(name, value) {
      if (name === 'channel') fields = { ...fields, channel: value }
      if (name === 'content') fields = { ...fields, content: 'text' }
    },
    ...(onRetry ? { onRetry } : {}),
  })
  return ({ plain }) => {
    parser.feed(decoder.decode(plain))
    const read = frames
    frames = []
    return read
  }
}

// Every write ends with a whole frame, so that no character is cut; a BOM in it is text.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
