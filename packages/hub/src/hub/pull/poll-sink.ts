import type { Sink } from '../live/sink.ts'
import { createFrameReader, type StreamFrame } from '../read/frame-reader.ts'

/** Collects the frames that a session writes, until they are enough for an answer. */
export interface PollSink extends Sink {
  /** In the order of the stream. The last frame may pass the limit. */
  readonly frames: readonly StreamFrame[]
  readonly retryMs: number
  /** Whether the frames have an event, a gap or a close, which the reader waits for. */
  readonly hasNews: boolean
  readonly full: boolean
  /** Whether there was no room even for the first news. */
  readonly rejected: boolean
  /** The approximate size of the frames. */
  readonly bytes: number
  readonly ended: boolean
  /** Resolves when the condition holds. The condition is checked now, after every write, and by `checkCondition`. */
  when(condition: () => boolean): Promise<void>
  checkCondition(): void
}

export interface PollSinkOptions {
  /** How many bytes the answer may hold now, 0 for none. The answer ends with the frame that passes this number. */
  room(): number
  /** The answer has grown by this many bytes. */
  onGrown(bytes: number): void
}

export function createPollSink({ room, onGrown }: PollSinkOptions): PollSink {
  const frames: StreamFrame[] = []
  let waiting: { condition: () => boolean; resolve: () => void }[] = []
  const framesOf = createFrameReader((ms) => {
    sink.retryMs = ms
  })

  function take(frame: StreamFrame): void {
    // Asked for each frame, because other answers take of the same room.
    sink.full ||= sink.hasNews && sink.bytes > room()
    // Later frames are not lost: the reader asks for them with the id of the last frame that it got.
    if (sink.full || sink.rejected) return
    const isNews = !withoutNews.has(frame.type)
    if (isNews && !sink.hasNews && room() === 0) {
      sink.rejected = true
      return
    }
    const more = Buffer.byteLength(frame.data) + frameOverhead
    frames.push(frame)
    sink.bytes += more
    onGrown(more)
    sink.hasNews ||= isNews
    sink.full = sink.hasNews && sink.bytes > room()
  }

  function checkCondition(): void {
    const due = waiting.filter(({ condition }) => condition())
    waiting = waiting.filter((waiter) => !due.includes(waiter))
    for (const { resolve } of due) resolve()
  }

  function end(): void {
    sink.ended = true
    checkCondition()
  }

  // Fields, not getters. An object literal with getters has a hidden class of its own, and only a full collection frees that class
  // with everything that the getters refer to: here the frames of an answer.
  const sink: Writable<PollSink> = {
    frames,
    retryMs: 0,
    hasNews: false,
    full: false,
    rejected: false,
    bytes: 0,
    ended: false,
    write(written) {
      for (const frame of framesOf(written)) take(frame)
      checkCondition()
      return !sink.full && !sink.rejected
    },
    // The answer has no socket yet on which bytes could wait.
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
  return sink
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

// The id, the type, and the JSON around them.
const frameOverhead = 100
// These frames alone make no answer. Otherwise a reader of a quiet channel on a busy hub would poll without pause.
const withoutNews = new Set(['hello', 'checkpoint'])
