import {
  createIdFormats,
  hlc,
  type IdCodec,
  type IdFormat,
  type IdFormats,
  type Position,
  RejoinError,
  sequence,
  snowflake,
  ulid,
  uuidv7,
} from '@rejoin/protocol'

/** A format as a log keeps it: codecs are code, so their settings are kept as the id of one certain position. */
export interface StoredFormat {
  readonly ids: string
  readonly version?: number | undefined
  readonly since?: Position | undefined
}

export function storeFormats(list: readonly IdFormat[]): StoredFormat[] {
  return list.map(({ codec, version, since }) => ({ ids: idsOf(codec), version, since }))
}

/**
 * The formats of a log that is there already. It keeps them, whatever it is opened with; a codec that it never had is a
 * mistake of the caller, who expects other ids than it would get.
 *
 * @param own - the codec that the log is opened with, if one was named
 * @param name - of the log, to begin a sentence with
 */
export function openFormats(stored: readonly StoredFormat[], own: IdCodec | undefined, name: string): IdFormats {
  const written = stored.map(({ ids }) => ids)
  const newest = written.at(-1)
  if (own && !written.includes(idsOf(own))) {
    refuse(
      `${name} writes ids as ${newest}, and was opened for ${idsOf(own)}. One event has one id for ever: ` +
        'open it with the codec it was made with, switch it by `rejoin migrate ids`, or begin another log.',
    )
  }
  // One object for one codec: by that a format that came back is told from one with other settings.
  const codecs = new Map(written.map((ids) => [ids, codecOf(ids, own)]))
  return createIdFormats(
    stored.map(({ ids, version, since }) => {
      const codec = codecs.get(ids)
      if (codec) return { codec, version, since }
      return refuse(
        `${name} writes ids as ${ids}, and Rejoin has no such codec: open it with the codec it was made with.`,
      )
    }),
  )
}

/** Whether a log can be opened again with this codec by those who know only how its ids look. */
export function isKnownCodec(codec: IdCodec): boolean {
  return codecOf(idsOf(codec), undefined) !== undefined
}

/** Tells the settings of a codec from any other: the id of one certain position. */
export function idsOf(codec: IdCodec): string {
  const position = { ms: codec.clock === 'counter' ? 0 : sampleMs, seq: 7 }
  return `${codec.name} ${codec.encode(position, { epoch: '0123456Z', number: 5, first: position })}`
}

// In 2027: within the range of every codec, and of a snowflake start chosen before that.
const sampleMs = 1_800_000_000_000

function codecOf(ids: string, own: IdCodec | undefined): IdCodec | undefined {
  const [name = '', sample = ''] = ids.split(' ')
  const known = [...(own ? [own] : []), ...(name in rebuilt ? [rebuilt[name as keyof typeof rebuilt](sample)] : [])]
  return known.find((codec) => codec && idsOf(codec) === ids)
}

/** The codecs of the protocol, with the settings that a sample tells. */
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

function refuse(message: string): never {
  throw new RejoinError(message, { code: 'invalid-option' })
}
