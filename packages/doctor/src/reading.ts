import { createParser, type ParsedEvent } from '@rejoin/protocol'
import type { Answer } from './wire.ts'

/** A stream as it arrives, with the time of each event and comment. */
export interface Reading {
  readonly events: readonly TimedEvent[]
  /** When each comment arrived. */
  readonly comments: readonly number[]
  /** When the first byte of the body arrived. */
  readonly firstByteAt: number | undefined
  /** When the body ended; undefined before that. */
  readonly endedAt: number | undefined
  /** Resolves with the first event for which `isIt` holds, or with undefined when the body ends without one. */
  until(isIt: (event: TimedEvent) => boolean): Promise<TimedEvent | undefined>
  /** Resolves when the body has ended. */
  readonly ended: Promise<void>
}

export interface TimedEvent extends ParsedEvent {
  /** When the event arrived, by `performance.now()`. */
  readonly at: number
}

export function readStream(answer: Answer): Reading {
  const events: TimedEvent[] = []
  const comments: number[] = []
  /** Called after each piece of the body, and at its end: each resolves its promise when its event has come. */
  const waiting = new Set<() => void>()
  let firstByteAt: number | undefined
  let endedAt: number | undefined
  let now = 0
  const parser = createParser({
    onEvent: (event) => void events.push({ ...event, at: now }),
    onComment: () => void comments.push(now),
    maxEventLength: 1024 * 1024,
  })
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

  async function read(): Promise<void> {
    try {
      for await (const piece of answer.body) {
        now = performance.now()
        firstByteAt ??= now
        parser.feed(decoder.decode(piece, { stream: true }))
        for (const settle of waiting) settle()
      }
    } catch {
      // An event is over the limit. The checks use the events before it.
      answer.close()
    }
    endedAt = performance.now()
    for (const settle of waiting) settle()
  }

  const ended = read()
  return {
    events,
    comments,
    get firstByteAt() {
      return firstByteAt
    },
    get endedAt() {
      return endedAt
    },
    until: (isIt) =>
      new Promise((resolve) => {
        const settle = () => {
          const found = events.find(isIt)
          if (!found && endedAt === undefined) return
          waiting.delete(settle)
          resolve(found)
        }
        waiting.add(settle)
        settle()
      }),
    ended,
  }
}
