import { judgeCursor, origin, renderId, sequence, snowflake, ulid } from '@rejoin/protocol'
import { expect, test } from 'vitest'
import { lmdbWorkbench, publish, readOn } from '../workbench.ts'

for (const durability of ['disk', 'os'] as const) {
  for (const end of ['a crash', 'a close'] as const) {
    test(`after ${end}, with durability ${durability}, a reader goes on from any event it has (§2.3)`, async () => {
      const { open, crash } = lmdbWorkbench()
      const before = await open({ durability })
      const places = await publish(before, 'a', '1', '2')
      const ids = places.map((place) => renderId(place, before))
      if (end === 'a close') await before.close()
      const place = crash()
      const after = await open({ durability }, place)
      const [later = origin] = await publish(after, 'a', '3')
      const head = await after.head()
      for (const [index, position] of places.entries()) {
        expect(renderId(position, after)).toBe(ids[index])
        expect(judgeCursor(ids[index], { ...after, head })).toEqual({ ok: true, position })
        expect(await readOn(after, 'a', position)).toEqual({ texts: ['2', '3'].slice(index), gaps: [] })
      }
      expect(after.history.at(-1)?.fork).toEqual(places[1])
      expect(renderId(later, after)).not.toContain(before.history[0]?.epoch)
    })
  }
}

test('a log that let go of all its events opens again, whatever their number and size', async () => {
  const { open } = lmdbWorkbench()
  // After some of these, LMDB counts a page that it assigned and let go of in one transaction, and has never written.
  for (const [count, units] of [
    [5, 1000],
    [20, 100],
    [10, 300],
    [20, 1000],
  ] as const) {
    const place = `${count} of ${units}`
    const before = await open({ durability: 'os' }, place)
    for (let number = 0; number < count; number += 1) await publish(before, 'a', 'x'.repeat(units))
    const { position } = await before.invalidate('a')
    await before.close()
    const after = await open({ durability: 'os' }, place)
    expect((await after.windows(['a']))[0]?.trimmedThrough, place).toEqual(position)
  }
})

test('a clock that was set back while the log was closed gives no position twice, and ids sort in the order they were given', async () => {
  const { open, environment } = lmdbWorkbench()
  const ids: string[] = []
  for (let start = 0; start < 8; start += 1) {
    const log = await open()
    for (const place of await publish(log, 'a', '1', '2')) ids.push(renderId(place, log))
    await log.close()
    environment.stepClock(-3_600_000)
  }
  expect(new Set(ids).size).toBe(16)
  expect([...ids].sort()).toEqual(ids)
})

test('snowflake and sequence ids go on over a restart', async () => {
  for (const [place, codec] of [
    ['flakes', snowflake()],
    ['counted', sequence()],
  ] as const) {
    const { open } = lmdbWorkbench()
    const before = await open({ codec }, place)
    const [first = origin] = await publish(before, 'a', '1')
    const id = renderId(first, before)
    await before.close()
    const log = await open({ codec }, place)
    await publish(log, 'a', '2')
    expect(judgeCursor(id, { ...log, head: await log.head() })).toEqual({ ok: true, position: first })
    expect(await readOn(log, 'a', first)).toEqual({ texts: ['2'], gaps: [] })
  }
})

test('a start at a time that snowflake ids cannot name is rejected with the reason, and leaves the log as it was', async () => {
  const { open, environment } = lmdbWorkbench()
  const codec = snowflake()
  const before = await open({ codec })
  const [first = origin] = await publish(before, 'a', '1')
  const id = renderId(first, before)
  await before.close()
  environment.stepClock(aCenturyMs)
  await expect(open({ codec })).rejects.toMatchObject({
    message: expect.stringMatching(/clock says 21.*ids of this log end/),
  })
  environment.stepClock(-aCenturyMs)
  const log = await open({ codec })
  const [second = origin] = await publish(log, 'a', '2')
  expect(judgeCursor(id, { ...log, head: await log.head() })).toEqual({ ok: true, position: first })
  expect(renderId(second, log)).toMatch(/^\d+$/)
  expect(await readOn(log, 'a', first)).toEqual({ texts: ['2'], gaps: [] })
})

test('while the clock is ahead of what its ids can name, a log takes no event and says so; then it goes on', async () => {
  const { open, environment } = lmdbWorkbench()
  const log = await open({ codec: snowflake() })
  await publish(log, 'a', '1')
  environment.stepClock(aCenturyMs)
  const rejected = { code: 'log-unavailable', retryable: true, message: expect.stringContaining('clock') }
  await expect(publish(log, 'a', 'too late')).rejects.toMatchObject(rejected)
  await expect(log.invalidate('a')).rejects.toMatchObject(rejected)
  await expect(log.end('a')).rejects.toMatchObject(rejected)
  await expect(log.probe()).rejects.toMatchObject(rejected)
  environment.stepClock(-aCenturyMs)
  await log.probe()
  await publish(log, 'a', '2')
  expect(await readOn(log, 'a', origin)).toEqual({ texts: ['1', '2'], gaps: [] })
})

test('a log that was once opened while the clock was far ahead goes on as before, when nothing was stored meanwhile', async () => {
  const { open, environment } = lmdbWorkbench()
  const before = await open({ codec: snowflake() })
  const [first = origin] = await publish(before, 'a', '1')
  const id = renderId(first, before)
  await before.close()
  environment.stepClock(aCenturyMs)
  for (let start = 0; start < 2; start += 1) await (await open({ codec: unboundedSnowflake })).close()
  environment.stepClock(-aCenturyMs)
  const log = await open()
  const [second = origin] = await publish(log, 'a', '2')
  expect(judgeCursor(id, { ...log, head: await log.head() })).toEqual({ ok: true, position: first })
  expect(renderId(second, log)).toMatch(/^\d+$/)
  expect(await readOn(log, 'a', origin)).toEqual({ texts: ['1', '2'], gaps: [] })
})

test('a new log whose first start was far ahead begins anew', async () => {
  const { open, environment } = lmdbWorkbench()
  environment.stepClock(aCenturyMs)
  await (await open({ codec: unboundedSnowflake })).close()
  environment.stepClock(-aCenturyMs)
  const log = await open()
  const [first = origin] = await publish(log, 'a', '1')
  expect(renderId(first, log)).toMatch(/^\d+$/)
})

test('a log that took events while the clock was far ahead says how it goes on, and then does, with all its events', async () => {
  const { open, environment } = lmdbWorkbench()
  const before = await open({ codec: snowflake() })
  const [first = origin] = await publish(before, 'a', '1')
  const id = renderId(first, before)
  await before.close()
  environment.stepClock(aCenturyMs)
  const ahead = await open({ codec: unboundedSnowflake, window: { maxAgeMs: 2 * aCenturyMs } })
  await publish(ahead, 'a', '2')
  await ahead.close()
  environment.stepClock(-aCenturyMs)
  const rejected = { code: 'invalid-option', message: expect.stringContaining('rejoin serve --ids ulid') }
  await expect(open({ codec: snowflake() })).rejects.toMatchObject(rejected)
  await expect(open()).rejects.toMatchObject(rejected)
  await (await open({ codec: ulid() })).close()
  const log = await open({ codec: snowflake() })
  await publish(log, 'a', '3')
  const head = await log.head()
  expect(judgeCursor(id, { ...log, head })).toEqual({ ok: true, position: first })
  expect(await readOn(log, 'a', origin)).toEqual({ texts: ['1', '2', '3'], gaps: [] })
  const { events } = await log.read(['a'], origin, head, { events: 10, bytes: 1e6 })
  const ids = events.map(({ position }) => renderId(position, log))
  expect(ids).toEqual([id, expect.stringMatching(/^[0-9A-Z]{26}$/), expect.stringMatching(/^[0-9A-Z]{26}$/)])
})

test('an idempotency key is recognised after a restart, and rejected for another publish', async () => {
  const { open } = lmdbWorkbench()
  const publishOnce = (log: Awaited<ReturnType<typeof open>>, data: string, hash: string) =>
    log.append([{ channel: 'a', type: 'message', data }], { token: data, once: { scope: 'me', key: 'k', hash } })
  const before = await open()
  const { stamps } = await publishOnce(before, '1', 'one')
  await before.close()
  const log = await open()
  expect(await publishOnce(log, '1', 'one')).toEqual({ stamps, repeated: true })
  await expect(publishOnce(log, '2', 'two')).rejects.toMatchObject({ code: 'key-reused' })
  expect((await log.windows(['a']))[0]?.events).toBe(1)
})

test('idempotency keys are bounded in number and in time, and the share of a publisher holds over a restart', async () => {
  const { open, environment } = lmdbWorkbench()
  const options = { idempotency: { maxKeys: 2, maxRecentKeys: 8, maxAgeMs: 3_600_000 } }
  const publishOnce = async (log: Awaited<ReturnType<typeof open>>, scope: string, key: string) => {
    const entries = [{ channel: 'a', type: 'message', data: key }]
    return (await log.append(entries, { token: key, once: { scope, key, hash: key } })).repeated
  }
  const before = await open(options)
  for (const key of ['1', '2', '3', '4']) expect(await publishOnce(before, 'me', key)).toBe(false)
  await expect(publishOnce(before, 'me', '5')).rejects.toMatchObject({ code: 'overloaded', retryable: true })
  await before.close()
  const log = await open(options)
  await expect(publishOnce(log, 'me', '5')).rejects.toMatchObject({ code: 'overloaded' })
  expect(await publishOnce(log, 'you', '5')).toBe(false)
  expect([await publishOnce(log, 'me', '1'), await publishOnce(log, 'me', '4')]).toEqual([true, true])
  await environment.advance(601_000)
  // Two of the five go, and more than two are kept only while they are young.
  await log.probe()
  expect(await publishOnce(log, 'me', '5')).toBe(false)
  expect(await publishOnce(log, 'me', '1')).toBe(false)
  await environment.advance(3_601_000)
  expect(await publishOnce(log, 'you', '5')).toBe(false)
})

test('a log is rejected under another codec, with advice', async () => {
  const { open } = lmdbWorkbench()
  await (await open({ codec: ulid() })).close()
  await expect(open({ codec: snowflake() })).rejects.toMatchObject({
    code: 'invalid-option',
    message: expect.stringContaining('open it with the codec it was made with'),
  })
})

// As earlier versions had it: the same ids, and a clock that is not bound to their range.
const { maxMs: _latest, ...unboundedSnowflake } = snowflake()

const aCenturyMs = 100 * 365 * 24 * 3_600_000
