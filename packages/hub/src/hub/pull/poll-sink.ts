import type { Sink } from '../live/sink.ts'
import { createFrameReader, type StreamFrame } from '../read/frame-reader.ts'

/** Keeps what a session writes, until it is enough for an answer. */
export interface PollSink extends Sink {
  /** In the order of the stream, the last being the one that passed the limit. */
  readonly frames: readonly StreamFrame[]
  readonly retryMs: number
  /** There is something for the user among the frames, or the news of a gap. */
  readonly hasNews: boolean
  readonly full: boolean
  /** There was no room for any news. */
  readonly refused: boolean
  /** Of the frames, about. */
  readonly bytes: number
  readonly ended: boolean
  /** Resolves when the condition holds. It is asked now, after every write, and when `checkCondition` is called. */
  when(condition: () => boolean): Promise<void>
  checkCondition(): void
}

export interface PollSinkOptions {
  /** How many bytes the answer may hold now, 0 for none. It ends with the frame that passes this. */
  room(): number
  /** The answer holds so many bytes more. */
  onGrown(bytes: number): void
}

export function createPollSink({ room, onGrown }: PollSinkOptions): PollSink {
  const frames: StreamFrame[] = []
  let waiting: { condition: () => boolean; resolve: () => void }[] = []
  let bytes = 0
  let retryMs = 0
  let hasNews = false
  let full = false
  let refused = false
  let ended = false
  const framesOf = createFrameReader((ms) => {
    retryMs = ms
  })

  function take(frame: StreamFrame): void {
    // Asked again for each frame: others have taken of the same room since the last one.
    full ||= hasNews && bytes > room()
    // What comes after is not lost: the reader asks for it with the id of the last frame that it got.
    if (full || refused) return
    const isNews = !withoutNews.has(frame.type)
    if (isNews && !hasNews && room() === 0) {
      refused = true
      return
    }
    const more = frame.data.length + frameOverhead
    frames.push(frame)
    bytes += more
    onGrown(more)
    hasNews ||= isNews
    full = hasNews && bytes > room()
  }

  function checkCondition(): void {
    const due = waiting.filter(({ condition }) => condition())
    waiting = waiting.filter((waiter) => !due.includes(waiter))
    for (const { resolve } of due) resolve()
  }

  function end(): void {
    ended = true
    checkCondition()
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
      return full
    },
    get refused() {
      return refused
    },
    get bytes() {
      return bytes
    },
    get ended() {
      return ended
    },
    write(written) {
      for (const frame of framesOf(written)) take(frame)
      checkCondition()
      return !full && !refused
    },
    // Nothing waits for a socket here.
    pending: 0,
    caughtUp: checkCondition,
    end,
    destroy: end,
    checkCondition,
    when(condition) {
      return new Promise((resolve) => {
        waiting.push({ condition, resolve })
        checkCondition()
      })
    },
  }
}

// An id, a type and what JSON puts around them.
const frameOverhead = 100
// Answered to at once, a reader of little on a busy hub would ask again without pause.
const withoutNews = new Set(['hello', 'checkpoint'])
