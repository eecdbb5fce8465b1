import { RejoinError } from '../errors.ts'
import { type IdCodec, rejectPosition } from './codec.ts'

export interface SnowflakeOptions {
  /**
   * The start from which ids count, in Unix milliseconds. The 41 bits of an id last for 69 years after it. With another
   * start, an id names another position: keep the start of a log, or give the new start a version (`IdFormat.version`).
   * @defaultValue 1_700_000_000_000 (14 November 2023, lasts until July 2093)
   */
  startMs?: number | undefined
}

/**
 * Ids as decimals of up to 63 bits: 41 bits of `ms`, a tag of 10 bits, 12 bits of `seq`. Within one branch, ids sort
 * like their positions when compared as numbers. The tag is the branch's number modulo 1,024, so the log must remember
 * its branches: a log that forgot them would use the tag 0 again, and take ids of lost branches for its own.
 */
export function snowflake({ startMs = 1_700_000_000_000 }: SnowflakeOptions = {}): IdCodec {
  if (!(Number.isInteger(startMs) && startMs >= 0 && startMs <= maxStartMs)) {
    throw new RejoinError(
      `snowflake: startMs is ${startMs}. Give a whole number of milliseconds from 0 to ${maxStartMs}, as Date.now() does.`,
      { code: 'invalid-option' },
    )
  }

  return {
    name: 'snowflake',
    clock: 'hybrid',
    maxSeq,
    minMs: startMs,
    maxMs: startMs + maxElapsed,
    lasting: true,
    mark: (branch) => String(branch.number % tags),
    encode(position, branch) {
      const elapsed = position.ms - startMs
      if (!(elapsed >= 0 && elapsed <= maxElapsed && position.seq <= maxSeq)) rejectPosition('snowflake', position)
      const low = (branch.number % tags) * 2 ** 12 + position.seq
      return ((BigInt(elapsed) << 22n) | BigInt(low)).toString()
    },
    decode(text) {
      if (!decimal.test(text)) return undefined
      const value = BigInt(text)
      const elapsed = Number(value >> 22n)
      if (elapsed > maxElapsed) return undefined
      const low = Number(value & 0x3fffffn)
      return { position: { ms: startMs + elapsed, seq: low & maxSeq }, mark: String(low >>> 12) }
    },
  }
}

const tags = 2 ** 10
const maxSeq = 2 ** 12 - 1
const maxElapsed = 2 ** 41 - 1
// Keeps every decoded `ms` within the 48 bits of the other codecs.
const maxStartMs = 2 ** 48 - 2 ** 41

// 2^63 - 1 has 19 digits.
const decimal = /^(?:0|[1-9][0-9]{0,18})$/
