import { createRandom } from '@rejoin/hub/testing'
import fc from 'fast-check'
import * as npmUlid from 'ulid'
import * as npmUuid from 'uuid'
import { describe, expect, test } from 'vitest'
import type { DecodedId, IdCodec } from '../src/codecs/codec.ts'
import { hlc } from '../src/codecs/hlc.ts'
import { sequence } from '../src/codecs/sequence.ts'
import { snowflake } from '../src/codecs/snowflake.ts'
import { ulid } from '../src/codecs/ulid.ts'
import { uuidv7 } from '../src/codecs/uuidv7.ts'
import type { Branch } from '../src/history.ts'
import { isIdText } from '../src/id-text.ts'
import { isAfter, type Position } from '../src/position.ts'
import { createPositionClock } from '../src/position-clock.ts'
import { everyCodec } from './every-codec.ts'

const now = 1_763_240_000_000
const branch: Branch = { epoch: 'K3X9M2PQ', number: 1027, first: { ms: 0, seq: 0 } }

describe.each(everyCodec)('$name', (codec) => {
  // That no two texts are alike follows: each leads back to its own position.
  test('names a million positions under a clock that jumps ten minutes either way, each once and for ever', () => {
    const wrong: unknown[] = []
    let last: Position | undefined
    for (const position of positions(codec, 1_000_000)) {
      if (last && !isAfter(position, last)) wrong.push({ last, position })
      const id = codec.encode(position, branch)
      const back = codec.decode(id)
      if (back?.position.ms !== position.ms || back.position.seq !== position.seq || !isIdText(id)) {
        wrong.push({ position, id, back })
      }
      last = position
    }
    expect(wrong).toEqual([])
  }, 60_000)

  test('gives back what it wrote of the branch', () => {
    for (const number of [0, 1, 1023, 1024, 5000]) {
      for (const epoch of ['00000000', 'K3X9M2PQ', 'ZZZZZZZZ']) {
        const one = { ...branch, number, epoch }
        expect(codec.decode(codec.encode(earliest(codec), one))?.mark).toBe(codec.mark(one))
      }
    }
  })

  test('holds its earliest and its largest position', () => {
    for (const position of [earliest(codec), largest(codec)]) {
      const id = codec.encode(position, branch)
      expect(codec.decode(id)?.position).toEqual(position)
      expect(isIdText(id)).toBe(true)
    }
  })

  test('rejects a position it has no room for, and says so', () => {
    const { ms, seq } = largest(codec)
    const outside = [
      { ms: ms + 1, seq: 0 },
      { ms, seq: seq + 1 },
      { ms: Number.NaN, seq: 0 },
    ]
    if (codec.minMs) outside.push({ ms: codec.minMs - 1, seq: 0 })
    for (const position of outside) {
      expect(() => codec.encode(position, branch)).toThrow(
        expect.objectContaining({ code: 'invalid-option', message: expect.stringContaining(codec.name) }),
      )
    }
  })

  test('reads any text without throwing, and only what it would write itself', () => {
    const written = fc.oneof(anyPosition(codec), fc.constantFrom(earliest(codec), largest(codec)))
    const texts = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 200 }),
      written.map((position) => codec.encode(position, branch)).chain(damaged),
    )
    fc.assert(
      fc.property(texts, (text) => {
        const decoded = codec.decode(text)
        if (decoded) expect(encodeAgain(codec, decoded)).toBe(text)
      }),
      { numRuns: 5000, seed: 7 },
    )
  })

  test('takes none of the ids of the other codecs for its own', () => {
    for (const other of everyCodec) {
      if (other.name === codec.name) continue
      for (const position of [earliest(other), largest(other)]) {
        expect(codec.decode(other.encode(position, branch))).toBeUndefined()
      }
    }
  })
})

describe('order', () => {
  test.each([ulid(), uuidv7(), hlc()])('of $name ids as text is the order of their positions', (codec) => {
    const ids = Array.from(positions(codec, 50_000), (position) => codec.encode(position, branch))
    expect(ids.findIndex((id, at) => at > 0 && !(id > ids[at - 1]!))).toBe(-1)
  })

  test('of snowflake ids as numbers is the order of their positions', () => {
    const ids = Array.from(positions(snowflake(), 50_000), (position) => BigInt(snowflake().encode(position, branch)))
    expect(ids.findIndex((id, at) => at > 0 && !(id > ids[at - 1]!))).toBe(-1)
  })
})

describe('the texts of §2.4', () => {
  test.each<[string, IdCodec, Position]>([
    ['01KA4MPEG0K3X9M2PQ0000001A', ulid(), { ms: now, seq: 42 }],
    ['019a894b-3a00-798f-aa68-2b5c0000002a', uuidv7(), { ms: now, seq: 42 }],
    ['265247784960012330', snowflake(), { ms: now, seq: 42 }],
    ['evt-42-k3x9m2pq', sequence(), { ms: 0, seq: 42 }],
    ['019a894b3a00-0000002a-eu1-k3x9m2pq', hlc({ node: 'eu1' }), { ms: now, seq: 42 }],
  ])('are: %s', (text, codec, position) => {
    expect(codec.encode(position, branch)).toBe(text)
    expect(codec.decode(text)).toEqual({ position, mark: codec.mark(branch) })
  })

  test.each<[string, IdCodec, string]>([
    ['a ulid whose time has 49 bits', ulid(), '81KA4MPEG0K3X9M2PQ0000001A'],
    ['a ulid in lower case', ulid(), '01ka4mpeg0k3x9m2pq0000001a'],
    ['a ulid that spells 1 as I', ulid(), '01KA4MPEG0K3X9M2PQ000000IA'],
    ['a ulid that spells 0 as O', ulid(), 'O1KA4MPEG0K3X9M2PQ0000001A'],
    ['a ulid that spells 1 as L', ulid(), '0LKA4MPEG0K3X9M2PQ0000001A'],
    ['a ulid with a U', ulid(), '01KA4MPEG0K3X9M2PU0000001A'],
    ['a ulid with a letter from beyond ASCII', ulid(), '01KA4MPEG0K3X9M2PQ000000\u01311'],
    ['a ulid and a line end', ulid(), '01KA4MPEG0K3X9M2PQ0000001A\n'],
    ['a uuid of version 4', uuidv7(), '019a894b-3a00-498f-aa68-2b5c0000002a'],
    ['a uuid of another variant', uuidv7(), '019a894b-3a00-798f-ca68-2b5c0000002a'],
    ['a uuid in upper case', uuidv7(), '019A894B-3A00-798F-AA68-2B5C0000002A'],
    ['a uuid without dashes', uuidv7(), '019a894b3a00798faa682b5c0000002a'],
    ['a snowflake with a leading zero', snowflake(), '0265247784960012330'],
    ['a snowflake of 64 bits', snowflake(), '9223372036854775808'],
    ['a snowflake with a sign', snowflake(), '-1'],
    ['a snowflake in another script', snowflake(), '\u0661'],
    ['nothing, as a snowflake', snowflake(), ''],
    ['a sequence with a leading zero', sequence(), 'evt-042-k3x9m2pq'],
    ['a sequence past 2^53 - 1', sequence(), 'evt-9007199254740992-k3x9m2pq'],
    ['a sequence with its epoch in upper case', sequence(), 'evt-42-K3X9M2PQ'],
    ['a sequence with a u in its epoch', sequence(), 'evt-42-k3x9m2pu'],
    ['an hlc in upper case', hlc(), '019A894B3A00-0000002A-eu1-k3x9m2pq'],
    ['an hlc without a node', hlc(), '019a894b3a00-0000002a--k3x9m2pq'],
    ['an hlc with a node of 17', hlc(), '019a894b3a00-0000002a-abcdefghijklmnopq-k3x9m2pq'],
  ])('are not: %s', (_, codec, text) => {
    expect(codec.decode(text)).toBeUndefined()
  })

  test('snowflake ends at 2^63 - 1', () => {
    expect(snowflake().encode(largest(snowflake()), { ...branch, number: 1023 })).toBe(String(2n ** 63n - 1n))
  })

  test('an id of another hlc node is read, as one of another branch', () => {
    const id = hlc({ node: 'eu1' }).encode({ ms: now, seq: 0 }, branch)
    expect(hlc({ node: 'us1' }).decode(id)?.mark).toBe('eu1-k3x9m2pq')
  })
})

describe('settings', () => {
  test.each(['', 'EU', 'eu-1', 'a'.repeat(17), 'eu\n'])('hlc rejects the node name %j', (node) => {
    expect(() => hlc({ node })).toThrow(expect.objectContaining({ code: 'invalid-option' }))
  })

  test.each([-1, 1.5, Number.NaN, 2 ** 48])('snowflake does not start at %j', (startMs) => {
    expect(() => snowflake({ startMs })).toThrow(expect.objectContaining({ code: 'invalid-option' }))
  })

  test('snowflake counts from the start it is given', () => {
    const codec = snowflake({ startMs: now })
    expect(codec.encode({ ms: now, seq: 0 }, { ...branch, number: 0 })).toBe('0')
    expect(codec.decode('4194304')).toEqual({ position: { ms: now + 1, seq: 0 }, mark: '0' })
  })
})

describe('libraries of others', () => {
  test('npm ulid accepts a ulid of ours and reads its time', () => {
    for (const position of positions(ulid(), 1000)) {
      const id = ulid().encode(position, branch)
      expect(npmUlid.isValid(id)).toBe(true)
      expect(npmUlid.decodeTime(id)).toBe(position.ms)
    }
  })

  test('npm uuid accepts a uuidv7 of ours, and its time stands where RFC 9562 wants it', () => {
    for (const position of positions(uuidv7(), 1000)) {
      const id = uuidv7().encode(position, branch)
      expect(npmUuid.validate(id)).toBe(true)
      expect(npmUuid.version(id)).toBe(7)
      const time = npmUuid.parse(id).subarray(0, 6)
      expect(time.reduce((ms, byte) => ms * 256 + byte, 0)).toBe(position.ms)
    }
  })

  test('ids made by npm ulid and npm uuid are texts of the same shape', () => {
    expect(ulid().decode(npmUlid.ulid(now))?.position.ms).toBe(now)
    expect(uuidv7().decode(npmUuid.v7({ msecs: now }))?.position.ms).toBe(now)
  })
})

/** Up to a few thousand positions per millisecond, so that `seq` fills up, and now and then a jump of the clock. */
function* positions(codec: IdCodec, count: number): Generator<Position> {
  const random = createRandom(count)
  let wallMs = now
  const clock = createPositionClock({
    kind: codec.clock,
    maxSeq: codec.maxSeq,
    minMs: codec.minMs ?? 0,
    now: () => {
      const draw = random()
      if (draw < 0.0005) wallMs += Math.round((random() * 2 - 1) * 600_000)
      else if (draw < 0.5) wallMs += 1
      return wallMs
    },
  })
  for (let made = 0; made < count; made++) yield clock.next()
}

function earliest(codec: IdCodec): Position {
  return { ms: codec.minMs ?? 0, seq: 0 }
}

function largest(codec: IdCodec): Position {
  const maxMs = { ulid: 2 ** 48 - 1, uuidv7: 2 ** 48 - 1, hlc: 2 ** 48 - 1, sequence: 0 }[codec.name]
  return { ms: maxMs ?? earliest(codec).ms + 2 ** 41 - 1, seq: codec.maxSeq }
}

function anyPosition(codec: IdCodec): fc.Arbitrary<Position> {
  const [from, to] = [earliest(codec), largest(codec)]
  return fc.record({ ms: fc.integer({ min: from.ms, max: to.ms }), seq: fc.integer({ min: 0, max: to.seq }) })
}

/** The text with one character replaced, added, left out or in the other case; now and then unharmed. */
function damaged(text: string): fc.Arbitrary<string> {
  const place = fc.nat({ max: text.length })
  const piece = fc.oneof(fc.constantFrom('', 'I', 'u', '0', '8', '-', '\n', '\ud800'), fc.string({ maxLength: 2 }))
  return fc.oneof(
    fc.tuple(place, place, piece).map(([at, to, put]) => text.slice(0, at) + put + text.slice(to)),
    fc.tuple(place, piece).map(([at, put]) => text.slice(0, at) + put + text.slice(at + put.length)),
    fc.constantFrom(text, text.toUpperCase(), text.toLowerCase(), ` ${text}`, `${text}\n`),
  )
}

function encodeAgain(codec: IdCodec, { position, mark }: DecodedId): string {
  if (codec.name === 'snowflake') return codec.encode(position, { ...branch, number: Number(mark) })
  const [epoch = '', node] = mark.toUpperCase().split('-').reverse()
  const sameNode = node === undefined ? codec : hlc({ node: node.toLowerCase() })
  return sameNode.encode(position, { ...branch, epoch })
}
