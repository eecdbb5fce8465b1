import { RejoinError } from './errors.ts'
import { origin, type Position } from './position.ts'

/** Assigns the positions of one log. A log has one clock: two clocks would assign the same position twice. */
export function createPositionClock({
  kind,
  maxSeq,
  now,
  minMs = 0,
  last: reached,
}: PositionClockOptions): PositionClock {
  const advance = kind === 'counter' ? count : tick
  let last = reached

  function tick(): Position {
    const wallMs = Math.floor(now())
    // Not `Math.max`: it would pass a NaN of the wall clock on to the position.
    const nowMs = wallMs > minMs ? wallMs : minMs
    if (last === undefined || nowMs > last.ms) return { ms: nowMs, seq: 0 }
    return last.seq < maxSeq ? { ms: last.ms, seq: last.seq + 1 } : { ms: last.ms + 1, seq: 0 }
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
  }
}

/** `hybrid` follows the wall clock and never goes back; `counter` counts from 0 and leaves `ms` at 0 (§2.2). */
export type PositionClockKind = 'hybrid' | 'counter'

export interface PositionClock {
  /** Assigns a position after all earlier positions, also when the wall clock went back. A counter starts at 0, 0. */
  next(): Position
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
