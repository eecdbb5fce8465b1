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
 * Reads the frames of a session back from its bytes: frames are kept as bytes alone, and there is one encoding for all readers. Readers
 * that share bytes share the frames, because each turn writes the same bytes to one reader after the other.
 */
export function createFrameReader(onRetry?: (ms: number) => void): (bytes: SharedBytes) => readonly StreamFrame[] {
  let lastId: string | null = null
  return (bytes) => {
    if (newest?.bytes !== bytes) newest = parse(bytes)
    const { frames, retryMs } = newest
    if (retryMs !== undefined) onRetry?.(retryMs)
    const idBefore = lastId
    lastId = frames.at(-1)?.id ?? lastId
    if (idBefore === null || frames[0]?.id !== null) return frames
    return frames.map((frame) => (frame.id === null ? { ...frame, id: idBefore } : frame))
  }
}

let newest: ParsedBytes | undefined

interface ParsedBytes {
  readonly bytes: SharedBytes
  /** As a stream has them that begins with these bytes. */
  readonly frames: readonly StreamFrame[]
  readonly retryMs: number | undefined
}

function parse(bytes: SharedBytes): ParsedBytes {
  const frames: StreamFrame[] = []
  let fields: Pick<StreamFrame, 'channel' | 'content'> = {}
  let retryMs: number | undefined
  const parser = createParser({
    maxEventLength: Number.POSITIVE_INFINITY,
    onEvent({ id, type, data }) {
      frames.push(Object.freeze({ id: id === '' ? null : id, type, data, ...fields }))
      fields = {}
    },
    onField(name, value) {
      if (name === 'channel') fields = { ...fields, channel: value }
      if (name === 'content') fields = { ...fields, content: 'text' }
    },
    onRetry(ms) {
      retryMs = ms
    },
  })
  parser.feed(decoder.decode(bytes.plain))
  return { bytes, frames, retryMs }
}

// Every write ends with a whole frame, so no character is cut. A BOM inside a frame is text.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
