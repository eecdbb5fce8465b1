import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { hlc } from '../src/codecs/hlc.ts'
import { sequence } from '../src/codecs/sequence.ts'
import { snowflake } from '../src/codecs/snowflake.ts'
import { ulid } from '../src/codecs/ulid.ts'
import { uuidv7 } from '../src/codecs/uuidv7.ts'
import type { Branch } from '../src/history.ts'
import { createIdFormats, type IdFormat } from '../src/id-format.ts'
import { isIdText } from '../src/id-text.ts'
import { everyCodec } from './every-codec.ts'

const now = 1_763_240_000_000
const branch: Branch = { epoch: 'K3X9M2PQ', number: 0, first: { ms: 0, seq: 0 } }
const early = { ms: now, seq: 7 }
const change = { ms: now + 1000, seq: 3 }
const late = { ms: now + 2000, seq: 0 }

describe('a version (§2.5)', () => {
  test('stands in front of the id', () => {
    const formats = createIdFormats([{ codec: ulid(), version: 12 }])
    const id = formats.encode(early, branch)
    expect(id).toBe(`v12_${ulid().encode(early, branch)}`)
    expect(formats.decode(id)).toMatchObject({ position: early, mark: 'K3X9M2PQ' })
  })

  test.each(everyCodec)('leaves an id of $name within what an id may hold', (codec) => {
    const position = { ms: codec.clock === 'counter' ? 0 : now, seq: codec.maxSeq }
    expect(isIdText(createIdFormats([{ codec, version: 999 }]).encode(position, branch))).toBe(true)
  })
})

describe('a log that has changed its format', () => {
  const formats = createIdFormats([{ codec: ulid() }, { codec: uuidv7(), version: 2, since: change }])

  test('renders each position in the format that held at it', () => {
    expect(formats.encode(early, branch)).toBe(ulid().encode(early, branch))
    expect(formats.encode({ ...change, seq: 2 }, branch)).toBe(ulid().encode({ ...change, seq: 2 }, branch))
    expect(formats.encode(change, branch)).toBe(`v2_${uuidv7().encode(change, branch)}`)
    expect(formats.encode(late, branch)).toBe(`v2_${uuidv7().encode(late, branch)}`)
  })

  test('reads the ids of all its formats', () => {
    for (const position of [early, change, late]) {
      expect(formats.decode(formats.encode(position, branch))).toMatchObject({ position })
    }
  })

  test('keeps its clock to what every format can hold', () => {
    expect(formats.range).toEqual({ kind: 'hybrid', maxSeq: uuidv7().maxSeq, minMs: 0, maxMs: 2 ** 48 - 1 })
    const withSnowflake = createIdFormats([{ codec: snowflake() }, { codec: ulid(), since: change }])
    expect(withSnowflake.range).toEqual({ kind: 'hybrid', maxSeq: 4095, minMs: 1_700_000_000_000, maxMs: 2 ** 48 - 1 })
  })

  test('needs a lasting log as long as one of its formats does', () => {
    expect(formats.lasting).toBe(false)
    expect(createIdFormats([{ codec: snowflake() }, { codec: ulid(), since: change }]).lasting).toBe(true)
  })

  test('renders a position before its oldest remembered format in that format', () => {
    const shortened = createIdFormats([
      { codec: uuidv7(), version: 2, since: change },
      { codec: ulid(), version: 3, since: late },
    ])
    expect(shortened.encode(early, branch)).toBe(`v2_${uuidv7().encode(early, branch)}`)
  })
})

describe('a text of no format of the log (§3.2)', () => {
  const formats = createIdFormats([{ codec: ulid(), version: 2 }])
  const id = ulid().encode(early, branch)

  test.each([
    ['a version it never had', `v3_${id}`],
    ['a version it never had, of a codec that is not known here', 'v999_2Yp9-whatever'],
    ['its codec, without the version', id],
    ['its version, with another codec', `v2_${uuidv7().encode(early, branch)}`],
    ['another codec', hlc({ node: 'eu1' }).encode(early, branch)],
    ['a snowflake with another start', snowflake({ startMs: 0 }).encode(early, branch)],
  ])('is an id of a foreign version: %s', (_, text) => {
    expect(formats.decode(text)).toBe('version')
  })

  test.each([
    ['nothing', ''],
    ['a word', 'latest'],
    ['a version and nothing', 'v3_'],
    ['its version and nothing', 'v2_'],
    ['its version and no id', 'v2_latest'],
    ['version 0', `v0_${id}`],
    ['a version with a leading zero', `v02_${id}`],
    ['a version past 999', `v1000_${id}`],
    ['a version in upper case', `V2_${id}`],
    ['two versions', `v2_v2_${id}`],
    ['a foreign version, with a space', 'v3_a b'],
    ['a foreign version, too long for an id', `v3_${'a'.repeat(126)}`],
    ['the id and a line end', `v2_${id}\n`],
  ])('is no id: %s', (_, text) => {
    expect(formats.decode(text)).toBe('unknown-id')
  })

  test('is never an error', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string().map((text) => `v2_${text}`),
    )
    fc.assert(
      fc.property(texts, (text) => void formats.decode(text)),
      { seed: 7 },
    )
  })
})

describe('a list of formats is rejected', () => {
  test.each<[string, IdFormat[], RegExp]>([
    ['when it is empty', [], /empty/],
    ['when a version is 0', [{ codec: ulid(), version: 0 }], /1 to 999/],
    ['when a version is 1000', [{ codec: ulid(), version: 1000 }], /1 to 999/],
    ['when a version is no whole number', [{ codec: ulid(), version: 1.5 }], /1 to 999/],
    [
      'when two of them could not be told apart',
      [{ codec: snowflake() }, { codec: snowflake({ startMs: 0 }), since: change }],
      /snowflake ids, which nobody could tell apart/,
    ],
    ['when the clocks differ', [{ codec: ulid() }, { codec: sequence(), since: change }], /counter clock/],
    ['when a later one does not say since when', [{ codec: ulid() }, { codec: uuidv7() }], /set since/],
    [
      'when it is out of order',
      [
        { codec: ulid(), since: late },
        { codec: uuidv7(), since: early },
      ],
      /not after the one before/,
    ],
  ])('%s', (_, list, message) => {
    expect(() => createIdFormats(list)).toThrow(
      expect.objectContaining({ code: 'invalid-option', message: expect.stringMatching(message) }),
    )
  })

  test('but two settings of one codec may follow each other under two versions', () => {
    const formats = createIdFormats([
      { codec: snowflake({ startMs: now - 5000 }) },
      { codec: snowflake({ startMs: now }), version: 2, since: change },
    ])
    expect(formats.decode(formats.encode(early, branch))).toMatchObject({ position: early })
    expect(formats.decode(formats.encode(late, branch))).toMatchObject({ position: late })
  })
})
