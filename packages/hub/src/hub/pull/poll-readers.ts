import type { Environment } from '../../environment.ts'
import type { Observers, ReaderFacts, ReaderObservation } from '../observation.ts'
import type { Admission } from '../readers/admission.ts'
import type { SubscribeRequest } from '../readers/subscribe-request.ts'

/** A reader that polls. All its polls count as one connection. */
export interface PollReader extends ReaderObservation {
  readonly since: number
}

/**
 * The readers whose last poll was answered and who are expected back. Without this, each of a reader's hundred polls an hour
 * would count as a reconnect and be announced as a return.
 *
 * A reader is known by the cursor of its last answer, its address and its subscription. Each answer is good for one poll. So the
 * next poll is free, and a second poll with the same old cursor counts as a reconnect.
 */
export interface PollReaders {
  enter(connection: string, request: SubscribeRequest): PollReader
  /** The reader whose next poll this is; undefined for a new reader. */
  goOn(request: SubscribeRequest): PollReader | undefined
  /** A poll of the reader was answered up to `cursor`, and the next poll is expected. */
  expect(reader: PollReader, request: SubscribeRequest, cursor: string): void
  leave(reader: PollReader, reason: string, cause?: unknown): void
  close(): void
}

export interface PollReadersContext {
  readonly environment: Environment
  readonly admission: Pick<Admission, 'enter' | 'leave'>
  readonly observers: Pick<Observers, 'tell'>
}

// A reader that stays away for longer has gone, and no longer counts as connected. `maxOpensPer10s` counts over the same time, so
// it never rejects a reader that polls less often.
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
      return { connection, channels: subscription.selectors, ...reader, since: environment.now() }
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
