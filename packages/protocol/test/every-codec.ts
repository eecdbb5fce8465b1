import type { IdCodec } from '../src/codecs/codec.ts'
import { hlc } from '../src/codecs/hlc.ts'
import { sequence } from '../src/codecs/sequence.ts'
import { snowflake } from '../src/codecs/snowflake.ts'
import { ulid } from '../src/codecs/ulid.ts'
import { uuidv7 } from '../src/codecs/uuidv7.ts'

export const everyCodec: readonly IdCodec[] = [ulid(), uuidv7(), snowflake(), sequence(), hlc()]
