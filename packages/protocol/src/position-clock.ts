import { RejoinError } from './errors.ts'
import { origin, type Position } from './position.ts'

/** Assigns the positions of one log. A log has one clock: two clocks would assign the same position twice. */
export function createPositionClock({
  kind,
  maxSeq,
  now,
  minMs = 0,
  maxMs = Number.POSITIVE_INFINITY,
  last: reached,
}: PositionClockOptions): PositionClock {
  const advance = kind === 'counter' ? count : tick
  let last = reached

  function tick(): Position {
    const wallMs = Math.floor(now())
    // Not `Math.max`: it would pass a NaN of the wall clock on to the position.
    const nowMs = wallMs > minMs ? wallMs : minMs
    const next = last === undefined || nowMs > last.ms ? { ms: nowMs, seq: 0 } : behind(last)
    // Thrown before the position counts: once the wall clock is right again, the clock goes on as if nothing had been.
    if (next.ms > maxMs) throw tooLate(next.ms, maxMs)
    return next
  }

  function behind({ ms, seq }: Position): Position {
    return seq < maxSeq ? { ms, seq: seq + 1 } : { ms: ms + 1, seq: 0 }
  }

  function count(): Position {
    if (last === undefined) return origin
    if (last.seq >= maxSeq) {
      throw new RejoinError(`The log has used all ${maxSeq} positions of its counter. Start a new log.`, {
        code: 'too-large',
      })
    }
    return { ms: 0, seq: last.seq + 1 }
  }

  return {
    get last() {
      return last ?? origin
    },
    next() {
      last = advance()
      return last
    },
    check() {
      advance()
    },
  }
}

function tooLate(ms: number, maxMs: number): RejoinError {
  return new RejoinError(
    `The clock says ${dateOf(ms)}, and the ids of this log end on ${dateOf(maxMs)}. Set the machine's clock right, then retry.`,
    { code: 'log-unavailable', retryable: true, cause: { nowMs: ms, maxMs } },
  )
}

function dateOf(ms: number): string {
  // The largest time that a date can have.
  return new Date(Math.min(ms, 8.64e15)).toISOString().slice(0, -14)
}

/** `hybrid` follows the wall clock and never goes back; `counter` counts from 0 and leaves `ms` at 0 (§2.2). */
export type PositionClockKind = 'hybrid' | 'counter'

export interface PositionClock {
  /** Assigns a position after all earlier positions, also when the wall clock went back. A counter starts at 0, 0. */
  next(): Position
  /** Throws when `next` would throw now. Assigns nothing. */
  check(): void
  /** The newest position that was assigned, or the origin before the first. */
  readonly last: Position
}

export interface PositionClockRange {
  readonly kind: PositionClockKind
  /**
   * The largest `seq` that the log's ids can hold. After it, a hybrid clock advances `ms` by one, even ahead of the
   * wall clock; a counter throws.
   */
  readonly maxSeq: number
  /**
   * The earliest `ms` of a position. Snowflake ids count from a start and cannot name an earlier position.
   * @defaultValue 0
   */
  readonly minMs?: number
  /**
   * The latest `ms` of a position. For a later one, a hybrid clock throws, and assigns nothing.
   * @defaultValue none
   */
  readonly maxMs?: number
}

export interface PositionClockOptions extends PositionClockRange {
  /** The wall clock in milliseconds. A counter never calls it. */
  readonly now: () => number
  /**
   * The newest position that the log has assigned. Give it when a log is opened again: without it, a counter repeats
   * its positions at once, and a hybrid clock does as soon as the wall clock is set back.
   * @defaultValue none: the log is new
   */
  readonly last?: Position | undefined
}
