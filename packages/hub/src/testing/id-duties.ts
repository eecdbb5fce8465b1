import assert from 'node:assert/strict'
import {
  type IdCodec,
  isAfter,
  judgeCursor,
  origin,
  type Position,
  renderId,
  sequence,
  snowflake,
  ulid,
  uuidv7,
} from '@rejoin/protocol'
import type { Log, NewIdFormat } from '../log/contract.ts'
import { append, appendAll, type Bench, type Duties, dataOf, entry, follow, readAll, type Stored } from './log-bench.ts'

/** Duties of a log whose id format can change while it is in use. They hold for a log that has `switchIds`. */
export const idDuties: Duties = whereIdsSwitch({
  async 'a switch of the ids changes those of later events, and of no event before it'(log) {
    const before = await appendAll(log, ['a', 'b'])
    const ids = before.map((event) => idOf(log, event))
    const { isNew, after } = await log.switchIds({ codec: otherCodec(log), version: 2 })
    assert.ok(isNew)
    const later = await appendAll(log, ['a', 'b'])
    assert.deepEqual(
      before.map((event) => idOf(log, event)),
      ids,
    )
    for (const event of later) assert.match(idOf(log, event), /^v2_/)
    assert.equal(after.version, 2)
    assert.deepEqual(log.formats.list.at(-1)?.since, after.since)
  },

  async 'ids from before a switch resume exactly, and so do those behind it'(log) {
    const events = await appendAll(log, ['a', 'a', 'a'])
    await log.switchIds({ codec: otherCodec(log), version: 2 })
    events.push(...(await appendAll(log, ['a', 'a', 'a'])))
    const head = await log.head()
    for (const [index, event] of events.entries()) {
      const verdict = judgeCursor(idOf(log, event), { formats: log.formats, history: log.history, head })
      assert.deepEqual(verdict, { ok: true, position: event.position })
      const following = await readAll(log, ['a'], event.position)
      assert.deepEqual(following.map(dataOf), events.slice(index + 1).map(dataOf))
    }
  },

  async 'a tail goes on over a switch, with every event once'(log, { environment }) {
    const tail = await follow(log, await log.head())
    const events = await appendAll(log, ['a', 'a'])
    const [, , during] = await Promise.all([
      append(log, [entry('a', 'x')]),
      log.switchIds({ codec: otherCodec(log), version: 2 }),
      append(log, [entry('a', 'y')]),
    ])
    events.push(...(await appendAll(log, ['a', 'a'])))
    await environment.settle()
    assert.deepEqual(tail.events().map(dataOf).sort(), [...events.map(dataOf), 'x', 'y'].sort())
    assert.deepEqual(
      tail.events().map(({ position }) => position),
      (await readAll(log, ['a'], origin)).map(({ position }) => position),
    )
    assert.equal(during.length, 1)
    // Publishers and readers get the same id for one event.
    for (const batch of tail.batches) {
      for (const { position } of batch.events) {
        const branch = batch.branch ?? log.history.findLast(({ first }) => !isAfter(first, position))
        assert.equal(branch && log.formats.encode(position, branch), renderId(position, log))
      }
    }
    tail.close()
  },

  async 'the formats outlive a restart, whatever codec of theirs the log is opened with'(log, { open, environment }) {
    const before = await appendAll(log, ['a'])
    await log.switchIds({ codec: otherCodec(log), version: 2 })
    before.push(...(await appendAll(log, ['a'])))
    const ids = before.map((event) => idOf(log, event))
    const formats = log.formats.list.length
    await log.close()
    await environment.advance(1)
    const again = await open()
    assert.equal(again.formats.list.length, formats)
    assert.deepEqual(
      before.map((event) => idOf(again, event)),
      ids,
    )
    const head = await again.head()
    for (const id of ids) {
      assert.ok(judgeCursor(id, { formats: again.formats, history: again.history, head }).ok)
    }
    const [later] = await appendAll(again, ['a'])
    assert.match(idOf(again, later as Stored), /^v2_/)
  },

  async 'a log can be switched time and again, and back to ids that it had'(log) {
    const { codec } = log.formats.list[0] as NewIdFormat
    const events = await appendAll(log, ['a'])
    for (const format of [{ codec, version: 2 }, { codec: otherCodec(log) }, { codec, version: 3 }, { codec }]) {
      await log.switchIds(format)
      events.push(...(await appendAll(log, ['a'])))
    }
    const ids = events.map((event) => idOf(log, event))
    assert.equal(new Set(ids).size, events.length)
    const head = await log.head()
    for (const [index, id] of ids.entries()) {
      const verdict = judgeCursor(id, { formats: log.formats, history: log.history, head })
      assert.deepEqual(verdict, { ok: true, position: events[index]?.position })
    }
  },

  async 'a switch to the ids it has is nothing, and a dry run does nothing'(log) {
    await appendAll(log, ['a'])
    const [first] = log.formats.list
    assert.equal((await log.switchIds(first as NewIdFormat)).isNew, false)
    const planned = await log.switchIds({ codec: otherCodec(log), version: 7 }, { dryRun: true })
    assert.deepEqual([planned.isNew, planned.after.version, planned.after.since], [true, 7, undefined])
    assert.equal(log.formats.list.length, 1)
  },

  async 'what a log could not keep to is rejected, with the reason, and changes nothing'(log) {
    const [first] = log.formats.list
    const counts = first?.codec.clock === 'counter'
    const rejected = { code: 'invalid-option' }
    await assert.rejects(log.switchIds({ codec: counts ? ulid() : sequence() }), { ...rejected, message: /clock/ })
    await assert.rejects(log.switchIds({ codec: otherCodec(log), version: 0 }), { ...rejected, message: /1 to 999/ })
    const own: IdCodec = { ...otherCodec(log), name: 'own' }
    await assert.rejects(log.switchIds({ codec: own }), { ...rejected, message: /of your own/ })
    assert.equal(log.formats.list.length, 1)
  },

  async 'positions suit the new ids from the first one on'(log) {
    const many = Array.from({ length: 5000 }, (_, index) => entry('a', `${index}`))
    const before = await append(log, many)
    // Snowflake ids have room for 4,096 events in a millisecond. Not every log can have such ids.
    const format = { codec: snowflake(), version: 2 }
    const isRejected = await log.switchIds(format, { dryRun: true }).then(
      () => false,
      () => true,
    )
    if (isRejected) return
    await log.switchIds(format)
    const later = await append(log, many)
    const ids = [...before, ...later].map((event) => idOf(log, event))
    assert.equal(new Set(ids).size, 10_000)
    const last = await readAll(log, ['a'], (later.at(-501) as Stored).position)
    assert.deepEqual(
      last.map((event) => idOf(log, event)),
      ids.slice(-500),
    )
  },
})

type SwitchingLog = Log & Required<Pick<Log, 'switchIds'>>

function whereIdsSwitch(duties: Record<string, (log: SwitchingLog, bench: Bench) => Promise<void>>): Duties {
  const tried = Object.entries(duties).map(([name, run]) => {
    const duty = async (bench: Bench) => {
      const log = await bench.open()
      if (log.switchIds) await run(log as SwitchingLog, bench)
    }
    return [name, duty] as const
  })
  return Object.fromEntries(tried)
}

/** Another codec for the same kind of positions: a counter, or milliseconds. */
function otherCodec(log: Log): IdCodec {
  if (log.formats.range.kind === 'counter') return sequence()
  return log.formats.list[0]?.codec.name === 'uuidv7' ? ulid() : uuidv7()
}

function idOf(log: Log, { position }: { readonly position: Position }): string {
  return renderId(position, log)
}
