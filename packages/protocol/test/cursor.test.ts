import { createRandom } from '@rejoin/hub/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { IdCodec } from '../src/codecs/codec.ts'
import { hlc } from '../src/codecs/hlc.ts'
import { snowflake } from '../src/codecs/snowflake.ts'
import { ulid } from '../src/codecs/ulid.ts'
import { judgeCursor, renderId } from '../src/cursor.ts'
import { createEpoch } from '../src/epoch.ts'
import { type History, openBranch } from '../src/history.ts'
import { createIdFormats } from '../src/id-format.ts'
import { isIdText } from '../src/id-text.ts'
import { origin, type Position } from '../src/position.ts'
import { createPositionClock } from '../src/position-clock.ts'
import { everyCodec } from './every-codec.ts'

const now = 1_763_240_000_000

describe.each(everyCodec)('with ids of $name', (codec) => {
  test('every id the log has given out is taken back, the first of the branch and the head too', () => {
    const log = openLog(codec)
    for (const position of [log.head, log.append(), log.append()]) {
      expect(judgeCursor(renderId(position, log), log)).toEqual({ ok: true, position })
    }
  })

  test('an id from before a loss is taken back as far as the log survived, and no further', () => {
    const log = openLog(codec)
    const [kept, lost] = [log.append(), log.append()]
    const ids = { first: renderId(log.history[0]!.first, log), kept: renderId(kept, log), lost: renderId(lost, log) }
    log.loseAllAfter(kept)
    log.append()
    expect(judgeCursor(ids.first, log)).toMatchObject({ ok: true })
    expect(judgeCursor(ids.kept, log)).toEqual({ ok: true, position: kept })
    expect(judgeCursor(ids.lost, log)).toEqual({ ok: false, reason: 'epoch' })
  })

  test('a second loss that reaches back behind the first is noticed too', () => {
    const log = openLog(codec)
    const [kept, lost] = [log.append(), log.append()]
    const id = renderId(lost, log)
    log.loseAllAfter(lost)
    expect(judgeCursor(id, log)).toMatchObject({ ok: true })
    log.loseAllAfter(kept)
    expect(judgeCursor(id, log)).toEqual({ ok: false, reason: 'epoch' })
  })

  test('ids of a log that was wiped are recognised by the log that replaced it', () => {
    const wiped = openLog(codec)
    const ids = [wiped.head, wiped.append(), wiped.loseAllAfter(wiped.head), wiped.append()].map((position) =>
      renderId(position, wiped),
    )
    const replaced = openLog(codec, { at: now + 60_000, seed: 2 })
    for (let appended = 0; appended < 10; appended++) replaced.append()
    for (const id of ids) expect(judgeCursor(id, replaced)).toEqual({ ok: false, reason: 'epoch' })
  })

  test('an id that names a branch but lies before its first position is of another branch', () => {
    const log = openLog(codec)
    const before = log.append()
    log.loseAllAfter(before)
    const forged = codec.encode(before, log.history[1]!)
    expect(judgeCursor(forged, log)).toEqual({ ok: false, reason: 'epoch' })
  })

  test('an id that lies on the next branch but names the one before it is of another branch', () => {
    const log = openLog(codec)
    log.loseAllAfter(log.append())
    const forged = codec.encode(log.append(), log.history[0]!)
    expect(judgeCursor(forged, log)).toEqual({ ok: false, reason: 'epoch' })
  })

  test('an id past the head is ahead', () => {
    const log = openLog(codec)
    const { head } = log
    const id = renderId(log.append(), log)
    expect(judgeCursor(id, { ...log, head })).toEqual({ ok: false, reason: 'ahead' })
  })

  test('an id that is both of another branch and ahead is of another branch, since that is tested first', () => {
    const other = openLog(codec, { seed: 3 })
    other.loseAllAfter(other.append())
    const log = openLog(codec)
    expect(judgeCursor(renderId(other.append(), other), log)).toEqual({ ok: false, reason: 'epoch' })
  })

  test('an id of another version is recognised, in either direction', () => {
    const plain = openLog(codec)
    const versioned = { ...plain, formats: createIdFormats([{ codec, version: 2 }]) }
    const next = { ...plain, formats: createIdFormats([{ codec, version: 3 }]) }
    for (const [from, to] of [[plain, versioned] as const, [versioned, plain] as const, [versioned, next] as const]) {
      expect(judgeCursor(renderId(plain.head, from), to)).toEqual({ ok: false, reason: 'version' })
    }
  })

  test('an id of every other codec is of another version', () => {
    const log = openLog(codec)
    for (const other of everyCodec) {
      if (other.name === codec.name) continue
      const foreign = openLog(other)
      expect(judgeCursor(renderId(foreign.head, foreign), log)).toEqual({ ok: false, reason: 'version' })
    }
  })

  test('an id that a proxy or a person has damaged is unknown', () => {
    const log = openLog(codec)
    const id = renderId(log.append(), log)
    for (const text of [`${id} `, ` ${id}`, `${id},${id}`, `"${id}"`, `${id}\n`, encodeURIComponent(`${id}\r\n`)]) {
      expect(judgeCursor(text, log)).toEqual({ ok: false, reason: 'unknown-id' })
    }
  })

  test('any text that is sent as a cursor gets a verdict', () => {
    const log = openLog(codec)
    fc.assert(
      fc.property(fc.oneof(fc.anything(), fc.string({ unit: 'binary' }), fc.string({ maxLength: 300 })), (sent) => {
        const verdict = judgeCursor(sent, log)
        if (typeof sent !== 'string' || !isIdText(sent)) expect(verdict).toEqual({ ok: false, reason: 'unknown-id' })
      }),
      { seed: 7 },
    )
  })
})

test.each([
  ['nothing', undefined],
  ['null', null],
  ['an empty text', ''],
  ['a number', 42],
  ['two ids', ['01KA4MPEG0K3X9M2PQ0000001A', '01KA4MPEG0K3X9M2PQ0000001B']],
  ['one id in a list', ['01KA4MPEG0K3X9M2PQ0000001A']],
  ['an object', { toString: () => '01KA4MPEG0K3X9M2PQ0000001A' }],
  ['a megabyte', 'A'.repeat(1_000_000)],
  ['a megabyte behind a version', `v2_${'A'.repeat(1_000_000)}`],
  ['half a character', '\ud800'],
])('%s is an unknown id', (_, sent) => {
  expect(judgeCursor(sent, openLog(ulid()))).toEqual({ ok: false, reason: 'unknown-id' })
})

test('an hlc id of another node is of another branch', () => {
  const log = openLog(hlc({ node: 'eu1' }))
  const id = renderId(log.append(), { ...log, formats: createIdFormats([{ codec: hlc({ node: 'us1' }) }]) })
  expect(judgeCursor(id, log)).toEqual({ ok: false, reason: 'epoch' })
})

test('a snowflake tag that comes back after 1,024 branches names the one that was open at the position', () => {
  const log = openLog(snowflake())
  const [kept, lost] = [log.append(), log.append()]
  const ids = { kept: renderId(kept, log), lost: renderId(lost, log) }
  log.loseAllAfter(kept)
  for (let opened = 1; opened < 1024; opened++) log.loseAllAfter(log.append())
  expect(log.history).toHaveLength(1025)
  const position = log.append()
  expect(snowflake().mark(log.history[1024]!)).toBe(snowflake().mark(log.history[0]!))
  expect(judgeCursor(renderId(position, log), log)).toEqual({ ok: true, position })
  expect(judgeCursor(ids.kept, log)).toEqual({ ok: true, position: kept })
  expect(judgeCursor(ids.lost, log)).toEqual({ ok: false, reason: 'epoch' })
})

test('an older event keeps its id when the log opens another branch', () => {
  const log = openLog(ulid())
  const position = log.append()
  const id = renderId(position, log)
  log.loseAllAfter(position)
  expect(renderId(position, log)).toBe(id)
})

test('a position from before the log cannot be rendered', () => {
  expect(() => renderId(origin, openLog(ulid()))).toThrow(expect.objectContaining({ code: 'invalid-option' }))
})

/** As much of a log as ids need: its clock, its branches and its head. Time moves on by 1 ms every fourth event. */
function openLog(codec: IdCodec, { at = now, seed = 1 } = {}) {
  const random = createRandom(seed)
  const formats = createIdFormats([{ codec }])
  let asked = 0
  const clock = createPositionClock({ ...formats.range, now: () => at + Math.floor(asked++ / 4) })
  let history: History = openBranch([], { epoch: createEpoch(random), first: clock.next() })
  return {
    formats,
    get history() {
      return history
    },
    get head() {
      return clock.last
    },
    append: () => clock.next(),
    loseAllAfter(fork: Position): Position {
      history = openBranch(history, { epoch: createEpoch(random), first: clock.next(), fork })
      return clock.last
    },
  }
}
