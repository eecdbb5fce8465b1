import { hlc, type IdCodec, sequence, snowflake, ulid, uuidv7 } from '@rejoin/protocol'

const codecs = { ulid, uuidv7, snowflake, sequence, hlc }

/** A value of the setting `ids`. */
export type IdFormatName = keyof typeof codecs

export const idFormatNames = Object.keys(codecs) as IdFormatName[]

/** The codec that writes ids in this format. */
export function idCodecOf(name: IdFormatName): IdCodec {
  return codecs[name]()
}
