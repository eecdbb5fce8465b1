import {
  createIdFormats,
  hlc,
  type IdCodec,
  type IdFormat,
  type IdFormats,
  type Position,
  sequence,
  snowflake,
  ulid,
  uuidv7,
} from '@rejoin/protocol'
import { invalidOption } from '../invalid-option.ts'

/** A format as a log keeps it. A codec is code, so the log keeps the id that it writes for one fixed position. */
export interface StoredFormat {
  readonly ids: string
  readonly version?: number | undefined
  readonly since?: Position | undefined
}

export function storeFormats(list: readonly IdFormat[]): StoredFormat[] {
  return list.map(({ codec, version, since }) => ({ ids: idsOf(codec), version, since }))
}

/**
 * The formats of an existing log. The log keeps them, whatever codec it is opened with. A codec that the log never had is
 * rejected: the caller expects ids that it would not get.
 *
 * @param own - the codec that the caller named, if any
 * @param name - the log's name, as the first words of a sentence
 */
export function openFormats(stored: readonly StoredFormat[], own: IdCodec | undefined, name: string): IdFormats {
  const written = stored.map(({ ids }) => ids)
  const newest = written.at(-1)
  if (own && !written.includes(idsOf(own))) {
    throw invalidOption(
      `${name} writes ids as ${newest}, and was opened for ${idsOf(own)}. One event has one id for ever: ` +
        'open it with the codec it was made with, switch it by `rejoin migrate ids`, or begin another log.',
    )
  }
  // Each codec becomes one object, because formats are compared by their codec objects.
  const codecs = new Map(written.map((ids) => [ids, codecOf(ids, own)]))
  return createIdFormats(
    stored.map(({ ids, version, since }) => {
      const codec = codecs.get(ids)
      if (codec) return { codec, version, since }
      throw invalidOption(
        `${name} writes ids as ${ids}, and Rejoin has no such codec: open it with the codec it was made with.`,
      )
    }),
  )
}

/**
 * Whether Rejoin can rebuild this codec from the ids that it writes, so that a log with it opens without being given the codec.
 */
export function isKnownCodec(codec: IdCodec): boolean {
  return codecOf(idsOf(codec), undefined) !== undefined
}

/** The name of a codec and the id that it writes for one fixed position. By that, two codecs with other settings differ. */
export function idsOf(codec: IdCodec): string {
  const position = { ms: codec.clock === 'counter' ? 0 : sampleMs, seq: 7 }
  return `${codec.name} ${codec.encode(position, { epoch: '0123456Z', number: 5, first: position })}`
}

// A time in 2027: within the range of every codec, and of a snowflake whose start lies before it.
const sampleMs = 1_800_000_000_000

function codecOf(ids: string, own: IdCodec | undefined): IdCodec | undefined {
  const [name = '', sample = ''] = ids.split(' ')
  const known = [...(own ? [own] : []), ...(name in rebuilt ? [rebuilt[name as keyof typeof rebuilt](sample)] : [])]
  return known.find((codec) => codec && idsOf(codec) === ids)
}

/** Makes the codecs of the protocol again, with the settings that a sample id shows. */
const rebuilt = {
  ulid,
  uuidv7,
  sequence,
  snowflake(sample: string): IdCodec | undefined {
    if (!/^\d{1,19}$/.test(sample)) return undefined
    const startMs = sampleMs - Number(BigInt(sample) >> 22n)
    return startMs >= 0 ? snowflake({ startMs }) : undefined
  },
  hlc(sample: string): IdCodec | undefined {
    const node = /^[0-9a-f]{12}-[0-9a-f]{8}-([a-z0-9]{1,16})-/.exec(sample)?.[1]
    return node === undefined ? undefined : hlc({ node })
  },
} satisfies Record<string, (sample: string) => IdCodec | undefined>
