import { createParser } from '@rejoin/protocol'
import type { SharedBytes, Sink } from './sink.ts'

/** One frame of a stream, as a poll is given it. */
export interface PollFrame {
  /** The last id of the stream once this frame is counted, null while there was none: `lastEventId` of an `EventSource`. */
  readonly id: string | null
  readonly type: string
  readonly data: string
}

/** Keeps what a session writes, until it is enough for an answer. */
export interface PollSink extends Sink {
  /** In the order of the stream, the last being the one that passed the limit. */
  readonly frames: readonly PollFrame[]
  readonly retryMs: number
  /** There is something for the user among the frames, or the news of a gap. */
  readonly hasNews: boolean
  readonly full: boolean
  readonly ended: boolean
  /** Resolves when the condition holds. It is asked now, after every write, and when `look` is called. */
  when(condition: () => boolean): Promise<void>
  look(): void
}

export function createPollSink(maxBytes: number): PollSink {
  const frames: PollFrame[] = []
  let waiting: { condition: () => boolean; resolve: () => void }[] = []
  let bytes = 0
  let retryMs = 0
  let hasNews = false
  let ended = false
  // The same bytes as everybody's, read back: an encoding of their own would be a second way to say the same thing.
  const parser = createParser({ maxEventLength: Number.POSITIVE_INFINITY, onEvent: take, onRetry })

  function take({ id, type, data }: { id: string; type: string; data: string }): void {
    // What comes after is not lost: the reader asks for it with the id of the last frame that it got.
    if (bytes > maxBytes) return
    frames.push({ id: id === '' ? null : id, type, data })
    bytes += data.length + frameOverhead
    hasNews ||= !withoutNews.has(type)
  }

  function onRetry(ms: number): void {
    retryMs = ms
  }

  function look(): void {
    const due = waiting.filter(({ condition }) => condition())
    waiting = waiting.filter((waiter) => !due.includes(waiter))
    for (const { resolve } of due) resolve()
  }

  function end(): void {
    ended = true
    look()
  }

  return {
    frames,
    get retryMs() {
      return retryMs
    },
    get hasNews() {
      return hasNews
    },
    get full() {
      return bytes > maxBytes
    },
    get ended() {
      return ended
    },
    write({ plain }: SharedBytes) {
      parser.feed(decoder.decode(plain))
      look()
      return bytes <= maxBytes
    },
    // Nothing waits for a socket here.
    pending: 0,
    caughtUp: look,
    end,
    destroy: end,
    look,
    when(condition) {
      return new Promise((resolve) => {
        waiting.push({ condition, resolve })
        look()
      })
    },
  }
}

// Every write ends with a whole frame, so that no character is cut; a BOM in it is text.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
// An id, a type and what JSON puts around them.
const frameOverhead = 100
// Answered to at once, a reader of little on a busy hub would ask again without pause.
const withoutNews = new Set(['hello', 'checkpoint'])
