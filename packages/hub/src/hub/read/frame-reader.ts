import { createParser } from '@rejoin/protocol'
import type { SharedBytes } from '../live/sink.ts'

/** One frame of a stream, as a reader inside the program gets it. */
export interface StreamFrame {
  /** The last id of the stream, this frame included; null before the first id. Like `lastEventId` of an `EventSource`. */
  readonly id: string | null
  readonly type: string
  readonly data: string
  /** `text` for an event that was published as text; without it, `data` is JSON (§4.16). */
  readonly content?: 'text'
  /** Where the event was published; for a reader that asked for the shape `channel` (§4.15). */
  readonly channel?: string
}

/**
 * Reads the frames of a session back from its bytes. Readers inside the program get the same bytes as all others, so that there
 * is one encoding.
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

// Every write ends with a whole frame, so no character is cut. A BOM inside a frame is text.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
