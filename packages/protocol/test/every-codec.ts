import type { IdCodec } from '../src/codecs/codec.ts'
import { hlc } from '../src/codecs/hlc.ts'
import { sequence } from '../src/codecs/sequence.ts'
import { snowflake } from '../src/codecs/snowflake.ts'
import { ulid } from '../src/codecs/ulid.ts'
import { uuidv7 } from '../src/codecs/uuidv7.ts'

export const everyCodec: readonly IdCodec[] = [ulid(), uuidv7(), snowflake(), sequence(), hlc()]

/** Numbers as `Math.random` gives them, the same on every run (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
