import type { Environment } from '../../environment.ts'
import type { SubscribeRequest } from '../hub.ts'
import type { Observers, ReaderFacts, ReaderObservation } from '../observation.ts'
import type { Admission } from '../readers/admission.ts'

/** A reader that polls. It counts as one connection, however many requests it makes. */
export interface PollReader extends ReaderObservation {
  readonly since: number
}

/**
 * The readers whose polls have been answered and who are expected back. Without it, each of a reader's hundred polls an
 * hour would be counted as a reconnect and announced as a return.
 *
 * A reader is known by the position that its last answer left it at, from the same address and with the same subscription,
 * and only once. So going on is free, and to come back to an old position again and again is what it is: a reconnect.
 */
export interface PollReaders {
  enter(connection: string, request: SubscribeRequest): PollReader
  /** Gives back the reader that this request goes on for; undefined when it is a new one. */
  goOn(request: SubscribeRequest): PollReader | undefined
  /** Its poll was answered, up to `cursor`. */
  expect(reader: PollReader, request: SubscribeRequest, cursor: string): void
  leave(reader: PollReader, reason: string, cause?: unknown): void
  close(): void
}

export interface PollReadersContext {
  readonly environment: Environment
  readonly admission: Pick<Admission, 'enter' | 'leave'>
  readonly observers: Pick<Observers, 'tell'>
}

// A reader that stays away for longer has gone, and its room is free. Ten seconds are the time over which opens are counted: a
// reader that polls less often than that is never rejected for coming too often.
const expectedWithinMs = 10_000

export function createPollReaders({ environment, admission, observers }: PollReadersContext): PollReaders {
  const expected = new Map<string, Set<{ reader: PollReader; cancel: () => void }>>()

  function remove(key: string, entry: { reader: PollReader; cancel: () => void }): void {
    entry.cancel()
    const entries = expected.get(key)
    entries?.delete(entry)
    if (entries?.size === 0) expected.delete(key)
  }

  function leave(reader: PollReader, reason: string, cause?: unknown): void {
    const { since, ...facts } = reader
    admission.leave(reader)
    observers.tell('close', { ...facts, reason, durationMs: environment.now() - since, cause })
  }

  return {
    leave,
    enter(connection, { reader = anonymous, subscription }) {
      admission.enter(reader)
      return { connection, channels: subscription.channels, ...reader, since: environment.now() }
    },
    goOn(request) {
      const { start } = request
      if (start.from !== 'cursor') return undefined
      const key = keyOf(request, start.cursor)
      for (const entry of expected.get(key) ?? []) {
        remove(key, entry)
        return entry.reader
      }
      return undefined
    },
    expect(reader, request, cursor) {
      const key = keyOf(request, cursor)
      const cancel = environment.after(expectedWithinMs, () => {
        remove(key, entry)
        leave(reader, 'disconnected')
      })
      const entry = { reader, cancel }
      expected.set(key, (expected.get(key) ?? new Set()).add(entry))
    },
    close() {
      for (const [key, entries] of expected) {
        for (const entry of entries) {
          remove(key, entry)
          leave(entry.reader, 'drain')
        }
      }
    },
  }
}

function keyOf({ reader = anonymous, subscription }: SubscribeRequest, cursor: string): string {
  return JSON.stringify([reader.ip, reader.subject, subscription.key, cursor])
}

export const anonymous: ReaderFacts = { ip: null, userAgent: null, subject: null }
