import type { IdCodec } from '@rejoin/protocol'

/**
 * Tells the settings of a codec from any other: the id of one certain place. An event whose id changed with a setting
 * would come twice to a reader that knows it by the old one, so a log that lasts keeps this and compares it.
 */
export function idsOf(codec: IdCodec): string {
  const place = { ms: codec.clock === 'counter' ? 0 : sampleMs, seq: 7 }
  return `${codec.name} ${codec.encode(place, { epoch: '0123456Z', number: 5, first: place })}`
}

// In 2027: within the range of every codec, and of a snowflake start chosen before that.
const sampleMs = 1_800_000_000_000
