import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openHistory } from '../history/history.ts'
import { checkHistory, fileSource, formatReport, linesSource } from './checker.ts'
import { story } from './story.ts'

test('the checker imports nothing of what it judges', () => {
  const folder = fileURLToPath(new URL('.', import.meta.url))
  const parts = readdirSync(folder).filter((file) => !file.endsWith('.test.ts'))
  const imported = ['../history/history.ts', ...parts].flatMap((file) => {
    const text = readFileSync(join(folder, file), 'utf8')
    return [...text.matchAll(/\bfrom '([^']+)'|\bimport\('([^']+)'\)/g)].map(([, name, lazy]) => name ?? lazy ?? '')
  })
  expect(imported.length).toBeGreaterThan(20)
  const own = /^(?:node:\w+|\.\/[\w-]+\.ts|\.\.\/history\/history\.ts)$/
  expect(imported.filter((name) => !own.test(name))).toEqual([])
})

test('a history in which everybody gets everything once, across a cut, breaks nothing', () => {
  const tell = story()
  tell.reader('r')
  tell.publish(1)
  tell.recv('r', 1)
  tell.close('r')
  tell.publish(2)
  tell.open('r', 'a1')
  tell.recv('r', 2)
  tell.quiet()
  tell.end('r')
  expect(tell.broken()).toEqual({})
  expect(tell.check().tally).toMatchObject({ acknowledged: 2, readers: 1, receipts: 2, streams: 2, repeats: 0 })
})

describe('lost-write', () => {
  test('an acknowledged event that nobody ever gets is lost', () => {
    const tell = story()
    tell.reader('r')
    tell.publish(1)
    tell.publish(2)
    tell.publish(3)
    tell.recv('r', 1)
    tell.recv('r', 3)
    expect(tell.broken()).toEqual({ 'lost-write': 1 })
  })

  test('a reader that stays to the end and lacks the last events has lost them', () => {
    const tell = story()
    tell.reader('r')
    tell.reader('s')
    for (const seq of [1, 2, 3]) {
      tell.publish(seq)
      tell.recv('r', seq)
    }
    tell.recv('s', 1)
    tell.quiet()
    tell.end('s')
    expect(tell.broken()).toEqual({ 'lost-write': 2 })
  })

  test('a reader that never ends counts as one that stays', () => {
    const tell = story()
    tell.reader('r')
    tell.publish(1)
    tell.quiet()
    expect(tell.broken()).toEqual({ 'lost-write': 1 })
  })

  test('a reader that leaves before the quiet end is not owed what comes after', () => {
    const tell = story()
    tell.reader('r')
    tell.publish(1)
    tell.recv('r', 1)
    tell.publish(2)
    tell.end('r')
    tell.quiet()
    expect(tell.broken()).toEqual({})
  })

  test('a reader is not owed events that were in the log before it connected', () => {
    const tell = story()
    tell.publish(1)
    tell.reader('r')
    tell.publish(2)
    tell.recv('r', 2)
    tell.quiet()
    expect(tell.broken()).toEqual({})
  })

  test('an event that was published while a stream opened may or may not be owed to it', () => {
    const tell = story()
    tell.write({ kind: 'reader', who: 'r', channels: ['a'], once: true, from: null })
    tell.write({ kind: 'connect', who: 'r', requested: null })
    tell.publish(1)
    tell.write({ kind: 'open', who: 'r', requested: null, resumed: false, id: 'elsewhere' })
    tell.quiet()
    expect(tell.broken()).toEqual({})
  })

  test('an event after the position at which a stream opened is owed, however early it was published', () => {
    const tell = story()
    tell.write({ kind: 'reader', who: 'r', channels: ['a'], once: true, from: null })
    tell.write({ kind: 'connect', who: 'r', requested: null })
    tell.publish(1)
    tell.publish(2)
    tell.write({ kind: 'open', who: 'r', requested: null, resumed: false, id: 'a1' })
    tell.quiet()
    expect(tell.broken()).toEqual({ 'lost-write': 1 })
  })

  test('a reader that passes over a lost event with its very first one is owed it too', () => {
    const tell = story()
    tell.reader('r')
    tell.publish(1)
    tell.publish(2)
    tell.recv('r', 2)
    expect(tell.broken()).toEqual({ 'lost-write': 1 })
  })

  test('a reader that begins with a replay is owed all of it', () => {
    const tell = story()
    for (const seq of [1, 2, 3, 4]) tell.publish(seq)
    tell.reader('r')
    for (const seq of [2, 4]) tell.recv('r', seq)
    tell.quiet()
    expect(tell.broken()).toEqual({ 'lost-write': 1 })
  })

  test('a reader that starts from a cursor is owed everything after it', () => {
    const tell = story()
    tell.publish(1)
    tell.publish(2)
    tell.reader('r', { from: 'a1' })
    tell.quiet()
    expect(tell.broken()).toEqual({ 'lost-write': 1 })
  })

  test('an event inside an announced gap is excused', () => {
    const tell = story()
    tell.write({ kind: 'window', maxEvents: 1 })
    tell.reader('r')
    tell.publish(1)
    tell.publish(2)
    tell.gap('r', 'start of r', 'a2')
    tell.publish(3)
    tell.recv('r', 3)
    tell.quiet()
    expect(tell.broken()).toEqual({})
  })

  test('an unanswered publish that nobody gets may never have happened', () => {
    const tell = story()
    tell.reader('r')
    tell.invoke(1)
    tell.unknown(1)
    tell.publish(2)
    tell.recv('r', 2)
    tell.quiet()
    expect(tell.broken()).toEqual({})
  })
})

describe('unannounced-gap', () => {
  test('a reader that passes over an event which another one has is seen', () => {
    const tell = story()
    tell.reader('r')
    tell.reader('s')
    for (const seq of [1, 2, 3, 4]) {
      tell.publish(seq)
      tell.recv('r', seq)
    }
    tell.recv('s', 1)
    tell.recv('s', 4)
    expect(tell.broken()).toEqual({ 'unannounced-gap': 2 })
    const [violation] = tell.check().violations
    expect(violation?.message).toBe('s got a·4 without a·2, a·3, and was not told')
    const shown = violation?.evidence.map(({ text }) => JSON.parse(text)) ?? []
    expect(shown.map(({ kind, seq }) => `${kind} ${seq}`)).toEqual([
      ...['recv 1', 'recv 4'],
      ...['invoke 2', 'ok 2', 'invoke 3', 'ok 3'],
    ])
  })

  test('a reader that comes back without its cursor has an unannounced gap', () => {
    const tell = story()
    tell.reader('r')
    tell.reader('s')
    tell.publish(1)
    tell.recv('s', 1)
    tell.recv('r', 1)
    tell.close('r')
    tell.publish(2)
    tell.recv('s', 2)
    tell.open('r', null, 'a2')
    tell.publish(3)
    tell.recv('s', 3)
    tell.recv('r', 3)
    expect(tell.broken()).toEqual({ 'unannounced-gap': 1 })
  })

  test('an unanswered publish that somebody has is there for everybody', () => {
    const tell = story()
    tell.reader('r')
    tell.reader('s')
    tell.invoke(1)
    tell.unknown(1)
    tell.recv('r', 1)
    tell.publish(2)
    tell.recv('r', 2)
    tell.recv('s', 2)
    expect(tell.broken()).toEqual({ 'unannounced-gap': 1 })
  })

  test('of two concurrent publishes the order is told by another reader', () => {
    const tell = story()
    tell.reader('r')
    tell.reader('s')
    tell.invoke(1)
    tell.invoke(2, { who: 'q' })
    tell.ok(1)
    tell.ok(2, { who: 'q' })
    tell.recv('r', 2)
    tell.recv('r', 1)
    tell.recv('s', 1)
    expect(tell.broken()).toEqual({ 'unannounced-gap': 1 })
  })

  test('a gap that was announced for an earlier position excuses no later loss', () => {
    const tell = story()
    tell.write({ kind: 'window', maxEvents: 1 })
    tell.reader('r')
    tell.reader('s')
    for (const seq of [1, 2, 3, 4]) {
      tell.publish(seq)
      tell.recv('s', seq)
    }
    tell.gap('r', 'start of r', 'a2')
    tell.recv('r', 4)
    expect(tell.broken()).toEqual({ 'unannounced-gap': 1 })
  })

  test('a gap that was announced for a later position excuses no earlier loss', () => {
    const tell = story()
    tell.write({ kind: 'window', maxEvents: 1 })
    tell.reader('r')
    tell.reader('s')
    for (const seq of [1, 2, 3, 4]) {
      tell.publish(seq)
      tell.recv('s', seq)
    }
    tell.recv('r', 2)
    tell.gap('r', 'a2', 'a4')
    expect(tell.broken()).toEqual({ 'unannounced-gap': 1 })
  })

  test('events inside the gap that was announced are excused', () => {
    const tell = story()
    tell.write({ kind: 'window', maxEvents: 1 })
    tell.reader('r')
    tell.reader('s')
    for (const seq of [1, 2, 3, 4]) {
      tell.publish(seq)
      tell.recv('s', seq)
    }
    tell.recv('r', 1)
    tell.gap('r', 'a1', 'a3')
    tell.recv('r', 4)
    expect(tell.broken()).toEqual({})
  })

  test('a channel that a reader did not ask for has no gaps for it', () => {
    const tell = story()
    tell.reader('r')
    tell.reader('s', { channels: ['a', 'b'] })
    tell.publish(1)
    tell.publish(1, { channel: 'b' })
    tell.publish(2)
    for (const who of ['r', 's']) tell.recv(who, 1)
    tell.recv('s', 1, { channel: 'b' })
    for (const who of ['r', 's']) tell.recv(who, 2)
    tell.quiet()
    expect(tell.broken()).toEqual({})
  })

  test('a reader is not owed events of a channel from the time when it may not read it', () => {
    const tell = story()
    tell.reader('r')
    tell.reader('s')
    tell.write({ kind: 'allow', who: 'r', channels: [] })
    tell.publish(1)
    tell.recv('s', 1)
    tell.write({ kind: 'allow', who: 'r', channels: ['a'] })
    tell.publish(2)
    for (const who of ['r', 's']) tell.recv(who, 2)
    tell.quiet()
    expect(tell.broken()).toEqual({})
  })
})

describe('false-gap', () => {
  function missing(count: number, window: { maxEvents?: number; maxAgeMs?: number; maxBytes?: number }) {
    const tell = story()
    tell.write({ kind: 'window', ...window })
    tell.reader('r')
    tell.publish(1, { bytes: 100 })
    tell.recv('r', 1)
    for (let seq = 2; seq <= count + 1; seq += 1) tell.publish(seq, { bytes: 100 })
    return tell
  }

  test('a gap is false while the window still holds all that was missed', () => {
    const tell = missing(3, { maxEvents: 3 })
    tell.gap('r', 'a1', 'a4')
    expect(tell.broken()).toEqual({ 'false-gap': 1 })
  })

  test('a gap is true once one event more was published than the window holds', () => {
    const tell = missing(3, { maxEvents: 2 })
    tell.gap('r', 'a1', 'a4')
    expect(tell.broken()).toEqual({})
  })

  test('a gap is judged by the age of what was missed', () => {
    const young = missing(1, { maxAgeMs: 1000 })
    young.wait(900)
    young.gap('r', 'a1', 'a2')
    expect(young.broken()).toEqual({ 'false-gap': 1 })
    const old = missing(1, { maxAgeMs: 1000 })
    old.wait(1000)
    old.gap('r', 'a1', 'a2')
    expect(old.broken()).toEqual({})
  })

  test('a gap is judged by the bytes of what was missed', () => {
    const small = missing(3, { maxBytes: 300 })
    small.gap('r', 'a1', 'a4')
    expect(small.broken()).toEqual({ 'false-gap': 1 })
    const large = missing(3, { maxBytes: 299 })
    large.gap('r', 'a1', 'a4')
    expect(large.broken()).toEqual({})
  })

  test('a gap is true when the log was trimmed by hand', () => {
    const tell = missing(3, {})
    tell.write({ kind: 'trim', channel: 'a', throughSeq: 2 })
    tell.gap('r', 'a1', 'a4')
    expect(tell.broken()).toEqual({})
  })

  test('a trim of what the reader has is no reason for a gap', () => {
    const tell = missing(3, {})
    tell.write({ kind: 'trim', channel: 'a', throughSeq: 1 })
    tell.gap('r', 'a1', 'a4')
    expect(tell.broken()).toEqual({ 'false-gap': 1 })
  })

  test('a gap with nothing behind the cursor is false', () => {
    const tell = missing(0, { maxEvents: 1 })
    tell.gap('r', 'a1', 'a1')
    expect(tell.broken()).toEqual({ 'false-gap': 1 })
  })

  test.each([
    { reason: 'epoch', fact: { kind: 'branch', why: 'restarted empty' } },
    { reason: 'ahead', fact: { kind: 'branch', why: 'restarted empty' } },
    { reason: 'unknown-id', fact: { kind: 'branch', why: 'restarted empty' } },
    { reason: 'forced', fact: { kind: 'invalidate', channels: ['a'] } },
  ] as const)('a gap for the reason $reason is true once after what makes it so', ({ reason, fact }) => {
    const tell = missing(1, {})
    tell.write(fact)
    tell.gap('r', 'a1', 'a2', { reason })
    expect(tell.broken()).toEqual({})
    tell.gap('r', 'a2', 'a2', { reason })
    expect(tell.broken()).toEqual({ 'false-gap': 1 })
  })

  test('a reader may be told of one branch while the next is being made, and then of that', () => {
    const tell = missing(0, {})
    tell.write({ kind: 'ids', order: 'text' })
    tell.write({ kind: 'branch', why: 'emptied' })
    tell.write({ kind: 'branched' })
    tell.publish(2)
    tell.write({ kind: 'branch', why: 'emptied again' })
    tell.gap('r', 'a1', 'a2', { reason: 'epoch' })
    tell.write({ kind: 'branched' })
    tell.gap('r', 'a2', 'a2x', { reason: 'epoch' })
    expect(tell.broken()).toEqual({})
    tell.gap('r', 'a2x', 'a2x', { reason: 'epoch' })
    expect(tell.broken()).toEqual({ 'false-gap': 1 })
  })

  test('a reader may be told of a loss channel by channel, and of no channel twice', () => {
    const lossOf = (fact: { mayLoseSince?: number }) => {
      const tell = missing(0, {})
      tell.write({ kind: 'ids', order: 'text' })
      tell.write({ kind: 'branch', why: 'a replica takes over', ...fact })
      tell.gap('r', 'a1', 'a1x', { reason: 'epoch', channels: ['a'] })
      tell.gap('r', 'a1x', 'a1y', { reason: 'epoch', channels: ['b', 'c'] })
      tell.write({ kind: 'branched' })
      return tell
    }
    expect(lossOf({ mayLoseSince: 0 }).broken()).toEqual({})
    expect(lossOf({}).broken()).toEqual({ 'false-gap': 1 })
    const again = lossOf({ mayLoseSince: 0 })
    again.gap('r', 'a1y', 'a1z', { reason: 'epoch', channels: ['c', 'd'] })
    expect(again.broken()).toEqual({ 'false-gap': 1 })
    const late = lossOf({ mayLoseSince: 0 })
    late.publish(2)
    late.gap('r', 'a2', 'a2x', { reason: 'epoch', channels: ['d'] })
    expect(late.broken()).toEqual({ 'false-gap': 1 })
  })

  test('a branch is no reason for a gap behind what was published after it, also to a reader that was told of none', () => {
    const tell = missing(0, {})
    tell.write({ kind: 'ids', order: 'text' })
    tell.write({ kind: 'branch', why: 'emptied' })
    tell.write({ kind: 'branched' })
    tell.publish(2)
    tell.reader('s')
    tell.gap('s', 'a2', 'a2', { reason: 'epoch' })
    expect(tell.broken()).toEqual({ 'false-gap': 1 })
  })

  test('a reader that had an event which was lost is told before it goes on; one that never had it is not', () => {
    const tell = story()
    tell.reader('r')
    tell.reader('s')
    tell.publish(1)
    for (const who of ['r', 's']) tell.recv(who, 1)
    tell.wait(1000)
    tell.publish(2)
    tell.recv('r', 2)
    tell.write({ kind: 'branch', why: 'a power cut', mayLoseSince: 500, losesSince: 500 })
    tell.write({ kind: 'branched' })
    tell.publish(3)
    tell.recv('s', 3)
    expect(tell.broken()).toEqual({})
    tell.recv('r', 3)
    expect(tell.broken()).toEqual({ 'unannounced-gap': 1 })
  })

  test('of two masters, a reader that is led from the one to the other is told; what each gave out is in its own order', () => {
    const split = () => {
      const tell = story()
      tell.write({ kind: 'ids', order: 'text' })
      for (const who of ['old', 'new']) tell.reader(who)
      tell.publish(1, { id: '1-E0' })
      for (const who of ['old', 'new']) tell.recv(who, 1, { id: '1-E0' })
      tell.wait(1000)
      tell.write({ kind: 'branch', why: 'a second master', mayLoseSince: 500, epoch: 'E0' })
      tell.write({ kind: 'branched' })
      tell.publish(2, { id: '8-E0' })
      tell.recv('old', 2, { id: '8-E0' })
      tell.publish(3, { id: '3-E1' })
      tell.recv('new', 3, { id: '3-E1' })
      tell.publish(4, { id: '9-E0' })
      tell.recv('old', 4, { id: '9-E0' })
      tell.write({ kind: 'branch', why: 'the old one is left', mayLoseSince: 500, losesSince: 500, epoch: 'E0' })
      tell.write({ kind: 'branched' })
      return tell
    }
    const told = split()
    told.gap('old', '9-E0', '4-E1', { reason: 'epoch' })
    told.publish(5, { id: '5-E1' })
    for (const who of ['old', 'new']) told.recv(who, 5, { id: '5-E1' })
    expect(told.broken()).toEqual({})
    const silent = split()
    silent.publish(5, { id: '5-E1' })
    for (const who of ['old', 'new']) silent.recv(who, 5, { id: '5-E1' })
    // For 3, which it never got, and for 2 and 4, which it had.
    expect(silent.broken()).toEqual({ 'unannounced-gap': 2 })
    const missing = split()
    missing.gap('old', '9-E0', '4-E1', { reason: 'epoch' })
    missing.publish(5, { id: '5-E1' })
    missing.publish(6, { id: '6-E1' })
    for (const who of ['old', 'new']) missing.recv(who, 6, { id: '6-E1' })
    expect(missing.broken()).toEqual({ 'lost-write': 1 })
  })

  test('an event that was acknowledged before a loss, and is not there, is lost all the same', () => {
    const tell = story()
    tell.reader('r')
    tell.publish(1)
    tell.wait(1000)
    tell.write({ kind: 'branch', why: 'a power cut', mayLoseSince: 500, losesSince: 500 })
    tell.write({ kind: 'branched' })
    tell.publish(2)
    tell.recv('r', 2)
    expect(tell.broken()).toEqual({ 'lost-write': 1 })
  })

  test('a reader that began with a replay may have lost part of it', () => {
    const tell = story()
    tell.write({ kind: 'window', maxEvents: 2 })
    for (const seq of [1, 2, 3, 4]) tell.publish(seq)
    tell.reader('r')
    tell.recv('r', 1)
    tell.gap('r', 'a1', 'a4')
    expect(tell.broken()).toEqual({})
  })

  test('events that were gone before a reader came are no reason for a gap', () => {
    const tell = story()
    tell.write({ kind: 'window', maxEvents: 2 })
    for (const seq of [1, 2, 3, 4]) tell.publish(seq)
    tell.reader('r')
    tell.publish(5)
    tell.gap('r', 'start of r', 'a5')
    expect(tell.broken()).toEqual({ 'false-gap': 1 })
  })

  test('rejected publishes and other channels do not fill a window', () => {
    const tell = missing(2, { maxEvents: 3 })
    for (const seq of [10, 11]) {
      tell.invoke(seq)
      tell.fail(seq)
      tell.publish(seq, { channel: 'b' })
    }
    tell.gap('r', 'a1', 'a3')
    expect(tell.broken()).toEqual({ 'false-gap': 1 })
  })

  test('each channel has its own window, and the last word on it counts', () => {
    const tell = missing(3, { maxEvents: 100 })
    tell.write({ kind: 'window', channels: ['b', 'c/*'], maxEvents: 1 })
    tell.gap('r', 'a1', 'a4')
    expect(tell.broken()).toEqual({ 'false-gap': 1 })
    const narrowed = missing(3, { maxEvents: 100 })
    narrowed.write({ kind: 'window', channels: ['a'], maxEvents: 1 })
    narrowed.gap('r', 'a1', 'a4')
    expect(narrowed.broken()).toEqual({})
  })

  test('an unanswered publish may have filled a window', () => {
    const tell = missing(2, { maxEvents: 2 })
    tell.invoke(10)
    tell.unknown(10)
    tell.gap('r', 'a1', 'a3')
    expect(tell.broken()).toEqual({})
  })

  test.each(['start of r', 'a checkpoint', 'after a gap'])('a hub must know the id it gave out: %s', (id) => {
    const tell = missing(1, { maxEvents: 1 })
    tell.write({ kind: 'mark', who: 'r', id: 'a checkpoint' })
    tell.publish(3)
    tell.gap('r', 'a1', 'after a gap')
    tell.gap('r', id, 'a3', { reason: 'unknown-id' })
    expect(tell.broken()).toEqual({ 'false-gap': 1 })
  })

  test('a cursor that nobody gave out may be unknown', () => {
    const tell = missing(1, {})
    tell.gap('r', 'nonsense', 'a2', { reason: 'unknown-id' })
    expect(tell.broken()).toEqual({})
  })

  test('without facts about the window a gap is counted and not judged', () => {
    const tell = story()
    tell.reader('r')
    tell.publish(1)
    tell.gap('r', 'start of r', 'a1')
    expect(tell.broken()).toEqual({})
    expect(tell.check().tally).toMatchObject({ gaps: 1, unjudgedGaps: 1 })
  })
})

describe('duplicate', () => {
  test('an event that reaches a reader twice is seen', () => {
    const tell = story()
    tell.reader('r')
    tell.publish(1)
    tell.recv('r', 1)
    tell.recv('r', 1)
    expect(tell.broken()).toEqual({ duplicate: 1 })
  })

  test('an event that reaches a reader under two ids is seen, also where repeats are allowed', () => {
    const tell = story()
    tell.reader('r', { once: false })
    tell.publish(1)
    tell.recv('r', 1)
    tell.recv('r', 1, { id: 'b1' })
    expect(tell.broken()).toEqual({ duplicate: 1 })
  })

  test('a reader that is not promised each event once may get one again', () => {
    const tell = story()
    tell.reader('r', { once: false })
    tell.publish(1)
    tell.recv('r', 1)
    tell.recv('r', 1)
    expect(tell.broken()).toEqual({})
    expect(tell.check().tally.repeats).toBe(1)
  })

  test('frames that arrive again on the wire and are dropped are counted', () => {
    const tell = story()
    tell.reader('r')
    tell.publish(1)
    tell.recv('r', 1)
    tell.close('r', { frames: 1 })
    tell.open('r', 'a1')
    tell.close('r', { frames: 1 })
    expect(tell.broken()).toEqual({})
    expect(tell.check().tally.repeatedFrames).toBe(1)
  })
})

describe('order', () => {
  test('an event before one that was in the log earlier is seen, across channels too', () => {
    const tell = story()
    tell.reader('r', { channels: ['a', 'b'] })
    tell.publish(1)
    tell.publish(1, { channel: 'b' })
    tell.recv('r', 1, { channel: 'b' })
    tell.recv('r', 1)
    expect(tell.broken()).toEqual({ order: 1 })
  })

  function concurrent() {
    const tell = story()
    tell.reader('r')
    tell.reader('s')
    tell.invoke(1)
    tell.invoke(2, { who: 'q' })
    tell.ok(1)
    tell.ok(2, { who: 'q' })
    return tell
  }

  test('concurrent publishes may come in either order', () => {
    const tell = concurrent()
    for (const who of ['r', 's']) {
      tell.recv(who, 2)
      tell.recv(who, 1)
    }
    expect(tell.broken()).toEqual({})
  })

  test('concurrent publishes must come in the same order for everybody', () => {
    const tell = concurrent()
    for (const seq of [2, 1]) tell.recv('r', seq)
    for (const seq of [1, 2]) tell.recv('s', seq)
    expect(tell.broken()).toEqual({ order: 1 })
  })

  test('concurrent publishes must come in the order of their ids', () => {
    const tell = concurrent()
    tell.write({ kind: 'ids', order: 'text' })
    for (const seq of [2, 1]) tell.recv('r', seq)
    expect(tell.broken()).toEqual({ order: 1 })
  })

  test('an event that was lost and sent again stands where it was stored again, for readers that got it from there', () => {
    const lostOnce = () => {
      const tell = story()
      for (const who of ['r', 's']) tell.reader(who)
      tell.wait(1000)
      tell.invoke(1)
      tell.recv('s', 1, { id: '1-E0' })
      tell.write({ kind: 'branch', why: 'old keys are put back', mayLoseSince: 500, losesSince: 500 })
      tell.write({ kind: 'branched' })
      tell.gap('s', '1-E0', '1-E1', { reason: 'epoch' })
      tell.invoke(2, { who: 'q' })
      tell.ok(2, { id: '2-E1', who: 'q' })
      tell.recv('r', 2, { id: '2-E1' })
      tell.recv('s', 2, { id: '2-E1' })
      tell.ok(1, { id: '3-E1' })
      tell.recv('r', 1, { id: '3-E1' })
      return tell
    }
    expect(lostOnce().broken()).toEqual({})
    const tell = lostOnce()
    tell.invoke(4, { who: 'q' })
    tell.ok(4, { id: '4-E1', who: 'q' })
    tell.reader('t')
    for (const [seq, id] of [
      [4, '4-E1'],
      [1, '3-E1'],
    ] as const)
      tell.recv('t', seq, { id })
    expect(tell.broken()).toMatchObject({ order: 1 })
  })

  test('an event that comes again after later ones is a repeat, not a step back', () => {
    const tell = story()
    tell.reader('r', { once: false })
    tell.publish(1)
    tell.publish(2)
    for (const seq of [1, 2, 1, 2]) tell.recv('r', seq)
    expect(tell.broken()).toEqual({})
  })
})

describe('inconsistent-id', () => {
  test('different bytes under one id are seen', () => {
    const tell = story()
    tell.reader('r')
    tell.publish(1)
    tell.recv('r', 1, { sha: '#other' })
    expect(tell.broken()).toEqual({ 'inconsistent-id': 1 })
  })

  test('an event that two readers know by different ids is seen', () => {
    const tell = story()
    tell.reader('r')
    tell.reader('s')
    tell.publish(1)
    tell.recv('r', 1)
    tell.recv('s', 1, { id: 'b1' })
    expect(tell.broken()).toEqual({ 'inconsistent-id': 1 })
  })

  test('an event that arrives under another id than its publisher was told is seen', () => {
    const tell = story()
    tell.reader('r')
    tell.publish(1)
    tell.recv('r', 1, { id: 'b1' })
    expect(tell.broken()).toEqual({ 'inconsistent-id': 1 })
  })

  test('two events with the same bytes are two events', () => {
    const tell = story()
    tell.reader('r')
    tell.publish(1, { sha: '#same' })
    tell.publish(2, { sha: '#same' })
    tell.recv('r', 1, { sha: '#same' })
    tell.recv('r', 2, { sha: '#same' })
    expect(tell.broken()).toEqual({})
  })
})

describe('id-reuse', () => {
  test('an id that two events have is seen', () => {
    const tell = story()
    tell.write({ kind: 'ids', order: 'text' })
    tell.reader('r')
    tell.publish(1, { id: 'x' })
    tell.recv('r', 1, { id: 'x' })
    tell.publish(2, { id: 'x' })
    tell.recv('r', 2, { id: 'x' })
    expect(tell.broken()).toEqual({ 'id-reuse': 1 })
  })

  test('an id that is smaller than one of before is seen', () => {
    const tell = story()
    tell.write({ kind: 'ids', order: 'text' })
    tell.reader('r')
    tell.publish(1, { id: 'm' })
    tell.recv('r', 1, { id: 'm' })
    tell.publish(2, { id: 'l' })
    tell.recv('r', 2, { id: 'l' })
    expect(tell.broken()).toEqual({ 'id-reuse': 1 })
  })

  test('ids that are text are compared as text, whatever their length', () => {
    const tell = story()
    tell.write({ kind: 'ids', order: 'text' })
    tell.publish(1, { id: 'aa' })
    tell.publish(2, { id: 'b' })
    expect(tell.broken()).toEqual({})
    tell.publish(3, { id: 'aaa' })
    expect(tell.broken()).toEqual({ 'id-reuse': 1 })
  })

  test('decimal ids are compared as numbers', () => {
    const tell = story()
    tell.write({ kind: 'ids', order: 'decimal' })
    tell.publish(1, { id: '9' })
    tell.publish(2, { id: '10' })
    expect(tell.broken()).toEqual({})
  })

  test('concurrent publishes may get their ids in either order', () => {
    const tell = story()
    tell.write({ kind: 'ids', order: 'text' })
    tell.invoke(1)
    tell.invoke(2, { who: 'q' })
    tell.ok(1, { id: 'z' })
    tell.ok(2, { who: 'q', id: 'y' })
    expect(tell.broken()).toEqual({})
  })
})

describe('unknown-twice', () => {
  test('a publish that was sent again and is there twice is seen', () => {
    const tell = story()
    tell.reader('r')
    tell.invoke(1)
    tell.unknown(1)
    tell.publish(1)
    tell.recv('r', 1, { id: 'first' })
    tell.recv('r', 1)
    expect(tell.broken()).toEqual({ 'unknown-twice': 1 })
  })

  test('two answers with different ids to one publish are seen, even when nobody reads them', () => {
    const tell = story()
    tell.publish(1)
    tell.publish(1, { id: 'second' })
    expect(tell.broken()).toEqual({ 'unknown-twice': 1 })
  })

  test('a publish that was sent again and is there once is as it should be', () => {
    const tell = story()
    tell.reader('r')
    tell.invoke(1)
    tell.unknown(1)
    tell.publish(1)
    tell.publish(1)
    tell.recv('r', 1)
    expect(tell.broken()).toEqual({})
  })

  test('a publish that is sent again after the log was emptied is there anew; within one log it is there once', () => {
    const tell = story()
    tell.reader('r')
    tell.reader('s')
    tell.invoke(1)
    tell.recv('r', 1, { id: 'first' })
    tell.unknown(1)
    tell.write({ kind: 'branch', why: 'emptied' })
    tell.write({ kind: 'branched' })
    tell.publish(1, { id: 'second' })
    tell.recv('s', 1, { id: 'second' })
    expect(tell.broken()).toEqual({})
    tell.publish(1, { id: 'third' })
    expect(tell.broken()).toEqual({ 'unknown-twice': 1 })
  })

  test('a publish that was under way while the log lost it is there anew, once for each loss', () => {
    const tell = story()
    tell.reader('r')
    tell.invoke(1)
    tell.recv('r', 1, { id: 'first' })
    expect(tell.broken()).toEqual({})
    tell.write({ kind: 'branch', why: 'a failover', mayLoseSince: 0 })
    tell.ok(1, { id: 'second' })
    tell.write({ kind: 'branched' })
    expect(tell.broken()).toEqual({})
    tell.reader('s')
    tell.recv('s', 1, { id: 'third' })
    expect(tell.broken()).toEqual({ 'inconsistent-id': 1 })
  })

  test('a log that was emptied before or after is no excuse for a publish that is there twice', () => {
    const tell = story()
    tell.write({ kind: 'branch', why: 'emptied' })
    tell.write({ kind: 'branched' })
    tell.publish(1)
    tell.publish(1, { id: 'second' })
    tell.write({ kind: 'branch', why: 'emptied again' })
    tell.write({ kind: 'branched' })
    expect(tell.broken()).toEqual({ 'unknown-twice': 1 })
  })

  test('an unanswered publish may turn up later, after others', () => {
    const tell = story()
    tell.reader('r')
    tell.invoke(1)
    tell.unknown(1)
    tell.publish(2)
    tell.recv('r', 2)
    tell.recv('r', 1)
    expect(tell.broken()).toEqual({})
  })
})

describe('phantom', () => {
  test('an event that nobody published is seen', () => {
    const tell = story()
    tell.reader('r')
    tell.recv('r', 1)
    expect(tell.broken()).toEqual({ phantom: 1 })
  })

  test('an event that nobody published does not make others look passed over', () => {
    const tell = story()
    tell.reader('r')
    tell.reader('s')
    tell.publish(1)
    tell.recv('s', 1)
    tell.recv('r', 2)
    expect(tell.broken()).toEqual({ phantom: 1 })
  })

  test('an event whose publish was rejected is seen', () => {
    const tell = story()
    tell.reader('r')
    tell.invoke(1)
    tell.fail(1)
    tell.recv('r', 1)
    expect(tell.broken()).toEqual({ phantom: 1 })
  })

  test('a rejected publish may be sent again', () => {
    const tell = story()
    tell.reader('r')
    tell.invoke(1)
    tell.fail(1)
    tell.publish(1)
    tell.recv('r', 1)
    expect(tell.broken()).toEqual({})
  })
})

describe('private-leak', () => {
  test('an event of a channel that was not asked for is seen', () => {
    const tell = story()
    tell.reader('r')
    tell.publish(1, { channel: 'b' })
    tell.recv('r', 1, { channel: 'b' })
    expect(tell.broken()).toEqual({ 'private-leak': 1 })
  })

  function revoked(graceMs: number) {
    const tell = story()
    tell.reader('r', { channels: ['a', 'b/*'] })
    tell.write({ kind: 'allow', who: 'r', channels: ['a', 'b/*'] })
    tell.publish(1, { channel: 'b/1' })
    tell.recv('r', 1, { channel: 'b/1' })
    tell.write({ kind: 'allow', who: 'r', channels: ['a'], graceMs })
    tell.publish(2, { channel: 'b/1' })
    tell.wait(99)
    return tell
  }

  test('an event of a channel whose rights were revoked is seen', () => {
    const tell = revoked(100)
    tell.recv('r', 2, { channel: 'b/1' })
    expect(tell.broken()).toEqual({ 'private-leak': 1 })
  })

  test('an event within the grace after a revocation is not seen', () => {
    const tell = revoked(1000)
    tell.recv('r', 2, { channel: 'b/1' })
    expect(tell.broken()).toEqual({})
  })

  test('only what a reader may read now counts, not what it once might', () => {
    const tell = revoked(0)
    tell.write({ kind: 'allow', who: 'r', channels: ['b/*'] })
    tell.write({ kind: 'allow', who: 'r', channels: [] })
    tell.recv('r', 2, { channel: 'b/1' })
    expect(tell.broken()).toEqual({ 'private-leak': 1 })
    const shown = tell.check().violations[0]?.evidence.map(({ text }) => JSON.parse(text))
    expect(shown?.[0]).toMatchObject({ kind: 'allow', channels: [] })
  })

  test('a channel that is given back may be read', () => {
    const tell = revoked(0)
    tell.write({ kind: 'allow', who: 'r', channels: ['b/*'] })
    tell.recv('r', 2, { channel: 'b/1' })
    expect(tell.broken()).toEqual({})
  })
})

describe('torn-frame', () => {
  test('bytes that are no frame are seen', () => {
    const tell = story()
    tell.reader('r')
    tell.write({ kind: 'malformed', who: 'r', why: 'a line without a colon', text: 'id 1' })
    expect(tell.broken()).toEqual({ 'torn-frame': 1 })
  })

  test('a reader that comes back with the id of a frame that was cut off is seen', () => {
    const tell = story()
    tell.reader('r')
    tell.publish(1)
    tell.close('r', { partial: 'a1' })
    tell.open('r', 'a1')
    expect(tell.broken()).toEqual({ 'torn-frame': 1 })
    expect(tell.check().violations[0]?.message).toBe('r came back with a1, out of a frame that was cut off')
  })

  test('an event that is handed over out of a frame that was cut off is seen', () => {
    const tell = story()
    tell.reader('r')
    tell.publish(1)
    tell.recv('r', 1)
    tell.close('r', { partial: 'a1' })
    expect(tell.broken()).toEqual({ 'torn-frame': 1 })
  })

  test('a cursor that no frame gave is seen', () => {
    const tell = story()
    tell.reader('r')
    tell.close('r')
    tell.open('r', 'a7')
    expect(tell.broken()).toEqual({ 'torn-frame': 1 })
  })

  test('a cursor that a frame gave only later is seen', () => {
    const tell = story()
    tell.reader('r')
    tell.close('r')
    tell.open('r', 'm1', null)
    tell.write({ kind: 'mark', who: 'r', id: 'm1' })
    tell.publish(1)
    tell.close('r')
    tell.open('r', 'a1', null)
    tell.recv('r', 1)
    expect(tell.broken()).toEqual({ 'torn-frame': 2 })
  })

  test('a frame that was cut off and comes again whole is as it should be', () => {
    const tell = story()
    tell.reader('r')
    tell.publish(1)
    tell.close('r', { partial: 'a1' })
    tell.open('r', 'start of r')
    tell.recv('r', 1)
    tell.close('r', { partial: null })
    tell.open('r', 'a1')
    expect(tell.broken()).toEqual({})
    expect(tell.check().tally.cutFrames).toBe(2)
  })

  test('a cursor may come from a hello, a checkpoint or a gap', () => {
    const tell = story()
    tell.write({ kind: 'window', maxEvents: 1 })
    tell.reader('r')
    tell.close('r')
    tell.open('r', 'start of r')
    tell.write({ kind: 'mark', who: 'r', id: 'm1' })
    tell.close('r')
    tell.publish(1)
    tell.publish(2)
    tell.open('r', 'm1', null)
    tell.gap('r', 'm1', 'a2')
    tell.close('r')
    tell.open('r', 'a2')
    expect(tell.broken()).toEqual({})
  })
})

describe('memory', () => {
  test('memory and queues over their budget are seen', () => {
    const tell = story()
    tell.write({ kind: 'budget', rssBytes: 1000, queueBytes: 10 })
    tell.write({ kind: 'memory', of: 'hub', rssBytes: 1001 })
    tell.write({ kind: 'memory', of: 'c_1', queueBytes: 11 })
    expect(tell.broken()).toEqual({ memory: 2 })
  })

  test('memory that fills its budget is within it', () => {
    const tell = story()
    tell.write({ kind: 'memory', of: 'hub', rssBytes: 5000 })
    expect(tell.broken()).toEqual({})
    tell.write({ kind: 'budget', rssBytes: 5000, queueBytes: 10 })
    tell.write({ kind: 'memory', of: 'c_1', queueBytes: 10 })
    expect(tell.broken()).toEqual({})
  })
})

describe('growth', () => {
  const calm = { of: 'hub', heapBytes: 20e6, descriptors: 430, timers: 400 }
  const growth = { heapBytes: 3e6, descriptors: 10, timers: 10 }

  function rested(rests: number, measured: (rest: number) => Partial<typeof calm>) {
    const tell = story()
    tell.write({ kind: 'budget', growth })
    for (let rest = 1; rest <= rests; rest += 1) tell.write({ kind: 'rest', ...calm, ...measured(rest) })
    return tell
  }

  test('a kilobyte left behind by each of 380 readers in each of twenty storms is seen', () => {
    expect(rested(20, (rest) => ({ heapBytes: 20e6 + rest * 380 * 1000 })).broken()).toEqual({ memory: 1 })
  })

  test('a connection or a timer left behind by each storm is seen', () => {
    expect(rested(20, (rest) => ({ descriptors: 430 + rest })).broken()).toEqual({ memory: 1 })
    expect(rested(20, (rest) => ({ timers: 400 + rest })).broken()).toEqual({ memory: 1 })
  })

  test('a hub that fills its memory in its first storms, or wavers, has left nothing behind', () => {
    expect(rested(20, (rest) => ({ heapBytes: rest < 3 ? 10e6 * rest : 20e6 })).broken()).toEqual({})
    const wavering = (rest: number) => ({ heapBytes: rest % 7 === 6 ? 30e6 : 20e6, descriptors: 430 + (rest % 5) })
    expect(rested(20, wavering).broken()).toEqual({})
  })

  test('the figures are told, and so is that there are too few to judge', () => {
    const figures = rested(20, (rest) => ({ heapBytes: 20e6 + rest * 1e5 })).check()
    expect(formatReport(figures)).toContain(
      'rest         heap 20.4 to 21.9 MB (at most 3.0 more), descriptors 430 to 430 (at most 10 more), timers 400 to 400 (at most 10 more)\n',
    )
    expect(formatReport(rested(5, () => ({})).check())).toContain('rest         not judged: 5 rests, 10 are needed\n')
    expect(formatReport(story().check())).not.toContain('rest  ')
  })
})

describe('liveness', () => {
  function healed(catchUpMs: number) {
    const tell = story()
    tell.write({ kind: 'budget', catchUpMs })
    tell.reader('r')
    tell.write({ kind: 'fault', what: 'reset', readers: ['r'] })
    tell.publish(1)
    tell.write({ kind: 'heal', readers: ['r'] })
    return tell
  }

  test('a reader that takes too long to have what was acknowledged before the heal is seen', () => {
    const tell = healed(100)
    tell.wait(100)
    tell.recv('r', 1)
    expect(tell.broken()).toEqual({ liveness: 1 })
  })

  test('a reader that is just in time is not seen', () => {
    const tell = healed(100)
    tell.wait(99)
    tell.recv('r', 1)
    expect(tell.broken()).toEqual({})
    expect(tell.check().tally.catchUpMs).toEqual({ median: 100, p99: 100, longest: 100 })
  })

  test('time in which other programs had the processors is not charged to a reader, and no other time is given', () => {
    const tell = healed(100)
    tell.wait(100)
    tell.write({ kind: 'waited', ms: 50 })
    tell.wait(40)
    tell.recv('r', 1)
    expect(tell.broken()).toEqual({})
    const late = healed(100)
    late.wait(100)
    late.write({ kind: 'waited', ms: 50 })
    late.wait(60)
    late.recv('r', 1)
    expect(late.broken()).toEqual({ liveness: 1 })
    const after = healed(100)
    after.wait(100)
    after.recv('r', 1)
    after.write({ kind: 'waited', ms: 5000 })
    expect(after.broken()).toEqual({ liveness: 1 })
  })

  test('what is published after the heal may come later', () => {
    const tell = healed(100)
    tell.recv('r', 1)
    tell.wait(100)
    tell.publish(2)
    tell.recv('r', 2)
    expect(tell.broken()).toEqual({})
  })

  test('a reader that is hit again before its time is over is not judged', () => {
    const tell = healed(100)
    tell.write({ kind: 'fault', what: 'reset' })
    tell.wait(100)
    tell.recv('r', 1)
    expect(tell.broken()).toEqual({})
  })

  test('a reader that never gets a stream is seen', () => {
    const tell = story()
    tell.write({ kind: 'budget', catchUpMs: 100 })
    tell.write({ kind: 'reader', who: 'r', channels: ['a'], once: true, from: null })
    tell.write({ kind: 'connect', who: 'r', requested: null })
    tell.quiet()
    expect(tell.broken()).toEqual({ liveness: 1 })
  })
})

describe('a history', () => {
  test('may lie in several files, in any order', () => {
    const folder = mkdtempSync(join(tmpdir(), 'rejoin-history-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const readers = openHistory(join(folder, 'readers.jsonl'))
    const publisher = openHistory(join(folder, 'publisher.jsonl'))
    readers.write({ kind: 'reader', who: 'r', channels: ['a'], once: true, from: null })
    readers.write({ kind: 'connect', who: 'r', requested: null })
    readers.write({ kind: 'open', who: 'r', requested: null, resumed: false, id: 'start' })
    for (let seq = 1; seq <= 2000; seq += 1) {
      publisher.write({ kind: 'invoke', who: 'p', channel: 'ä', seq, sha: `#${seq}` })
      publisher.write({ kind: 'ok', who: 'p', channel: 'ä', seq, id: `id${seq}` })
      readers.write({ kind: 'recv', who: 'r', channel: 'ä', seq, id: `id${seq}`, sha: seq === 1999 ? '#?' : `#${seq}` })
    }
    readers.close()
    publisher.close()
    const report = checkHistory(['readers.jsonl', 'publisher.jsonl'].map((file) => fileSource(join(folder, file))))
    expect(report.tally).toMatchObject({ acknowledged: 2000, receipts: 2000 })
    expect(report.counts['inconsistent-id']).toBe(1)
    expect(report.counts['private-leak']).toBe(2000)
    const [evidence] = report.violations.find(({ invariant }) => invariant === 'inconsistent-id')?.evidence ?? []
    expect(evidence?.where).toBe(`${join(folder, 'readers.jsonl')}:2002`)
    expect(JSON.parse(evidence?.text ?? '{}')).toMatchObject({ kind: 'recv', seq: 1999 })
  })

  test.each([
    { line: '{"kind":"recv","t":1', complaint: /story:1 is not JSON/ },
    { line: '{"kind":"recv"}', complaint: /story:1 has no "kind" or no "t"/ },
    { line: '{"kind":"receive","t":1}', complaint: /story:1 is of an unknown kind: receive/ },
    { line: '{"kind":"connect","t":1,"who":"r","requested":null}', complaint: /r has no line of the kind "reader"/ },
  ])('with the line $line is rejected', ({ line, complaint }) => {
    expect(() => checkHistory([linesSource('story', [line])])).toThrow(complaint)
  })

  test('tells how long readers were away beyond what they were asked to be', () => {
    const tell = story()
    tell.reader('r')
    const stream = (lastsMs: number) => {
      tell.write({ kind: 'connect', who: 'r', requested: null })
      tell.write({ kind: 'open', who: 'r', requested: null, resumed: false, id: null })
      tell.wait(lastsMs - 1)
      seq += 1
      tell.recv('r', seq)
      tell.wait(3000)
      tell.close('r', { retryMs: 100 })
    }
    let seq = 0
    tell.close('r')
    stream(5000)
    tell.wait(148)
    stream(4999)
    tell.wait(1000)
    stream(5000)
    tell.write({ kind: 'connect', who: 'r', requested: null })
    tell.close('r')
    tell.wait(500)
    stream(10)
    const { resumeMs, overRetryMs } = tell.check().tally
    expect(resumeMs).toEqual({ median: 504, p99: 1002, longest: 1002 })
    expect(overRetryMs).toEqual({ median: 50, p99: 50, longest: 50 })
  })

  test('is summed up with its evidence', () => {
    const tell = story()
    tell.reader('r')
    tell.publish(1)
    tell.recv('r', 1)
    tell.recv('r', 1)
    const text = formatReport(tell.check())
    expect(text).toContain('✗ duplicate        1')
    expect(text).toContain('duplicate: r got a·1 twice\n  story:6: {"t":6,"kind":"recv"')
    expect(text).toContain('no quiet end')
    expect(text).toMatch(/The promise is broken\.$/)
  })
})
