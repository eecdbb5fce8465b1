import { RejoinError } from './errors.ts'
import { origin, type Position } from './position.ts'

/** Numbers the events of one log. Not shared between writers: two clocks over one log would assign a position twice. */
export function createClock({ kind, maxSeq, now, minMs = 0, last: reached }: ClockOptions): Clock {
  const advance = kind === 'counter' ? count : tick
  let last = reached

  function tick(): Position {
    const wallMs = Math.floor(now())
    // Not Math.max: a wall clock that answers NaN must not end up in a position.
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
export type ClockKind = 'hybrid' | 'counter'

export interface Clock {
  /** A position after every earlier one, whatever the wall clock did in between. The first of a counter is 0, 0. */
  next(): Position
  /** The position assigned last; the origin as long as there is none. */
  readonly last: Position
}

export interface ClockRange {
  readonly kind: ClockKind
  /** The largest `seq` the log's ids can hold. After it `ms` advances by one, ahead of the wall clock if need be. */
  readonly maxSeq: number
  /**
   * No position gets an earlier millisecond. Snowflake ids count from a start and cannot name what is before it.
   * @defaultValue 0
   */
  readonly minMs?: number
}

export interface ClockOptions extends ClockRange {
  /** The wall clock in milliseconds. A counter never asks it. */
  readonly now: () => number
  /**
   * The newest position the log has assigned, when it is opened again. Left out for a log that has some, positions are used
   * twice as soon as the wall clock has been set back.
   * @defaultValue none: the log is new
   */
  readonly last?: Position | undefined
}
