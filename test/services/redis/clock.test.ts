import { systemEnvironment } from '@rejoin/hub'
import { createRandom } from '@rejoin/hub/testing'
import { isAfter, snowflake, ulid, uuidv7 } from '@rejoin/protocol'
import { expect, onTestFinished, test } from 'vitest'
import { startRedis } from '../../support/redis-server.ts'
import { createWallClock } from '../../support/wall-clock.ts'
import { openRedisLog, operate } from './opened-log.ts'

test('a Redis whose clock is set back and forth gives ids that grow, and loses nothing', async () => {
  const clock = createWallClock()
  onTestFinished(() => clock.remove())
  const server = await startRedis({ env: clock.env })
  onTestFinished(() => server.remove())
  // A step of an hour must not be taken for the age of events.
  const window = { maxAgeMs: 24 * 3_600_000 }
  const [one, other] = [await openRedisLog(server.port, { window }), await openRedisLog(server.port, { window })]
  const texts: string[] = []
  for (const [index, aheadMs] of [0, -60_000, 3_600_000, -3_600_000, 600_000, 599_000, 0].entries()) {
    clock.set(aheadMs)
    const [seconds] = (await operate(server.port, 'TIME')) as string[]
    expect(Math.abs(Number(seconds) * 1000 - Date.now() - aheadMs)).toBeLessThan(5000)
    for (const hub of [one, other]) {
      const text = `${texts.length}, at step ${index}`
      const [position] = await hub.publish('a', text)
      texts.push(text)
      await Promise.all([one.reached(position!), other.reached(position!)])
    }
  }
  const places = one.events().map(({ position }) => position)
  expect(places.every((place, index) => index === 0 || isAfter(place, places[index - 1]!))).toBe(true)
  for (const hub of [one, other]) {
    expect(hub.events().map(({ data }) => data)).toEqual(texts)
    expect(hub.events().map(({ position }) => position)).toEqual(places)
    expect(await hub.read(['a'], hub.start)).toEqual({ data: texts, gap: undefined })
    expect(hub.log.history).toHaveLength(1)
  }
  expect(await Promise.all(places.map((place) => other.judge(one.idOf(place))))).toEqual(places.map(() => 'ok'))
})

test('while the clock of Redis is ahead of what snowflake ids can name, a log takes no event and says why; then it goes on', async () => {
  const clock = createWallClock()
  onTestFinished(() => clock.remove())
  const server = await startRedis({ env: clock.env })
  onTestFinished(() => server.remove())
  const options = { codec: snowflake(), window: { maxAgeMs: 100 * yearMs } }
  const hub = await openRedisLog(server.port, options)
  await hub.publish('a', '1')
  clock.set(80 * yearMs)
  const away = {
    code: 'log-unavailable',
    message: expect.stringMatching(/clock of Redis is in 21\d\d, and the ids of this log end in 2093/),
  }
  await expect(hub.publish('a', '2')).rejects.toMatchObject(away)
  await expect(hub.log.invalidate('a')).rejects.toMatchObject(away)
  await expect(hub.log.probe()).rejects.toMatchObject(away)
  await hub.log.close()
  // As after a hub that was killed: the next one has to open a branch.
  await operate(server.port, 'SCRIPT', 'FLUSH')
  await expect(openRedisLog(server.port, options)).rejects.toMatchObject(away)
  await expect(openRedisLog(server.port, { ...options, prefix: 'new' })).rejects.toMatchObject(away)
  clock.set(0)
  const next = await openRedisLog(server.port, options)
  const [position] = await next.publish('a', '3')
  await next.log.probe()
  expect(await next.judge(next.idOf(position!))).toBe('ok')
  expect((await next.read(['a'], hub.start)).data).toEqual(['1', '3'])
})

const yearMs = 365 * 24 * 3_600_000

test.each([ulid(), uuidv7(), snowflake()].map((codec) => [codec.name, codec] as const))(
  'a Redis that was emptied while no hub ran, and whose clock is behind, takes no %s id from before for its own (§2.3)',
  async (_, codec) => {
    const server = await startRedis()
    onTestFinished(() => server.remove())
    // With chance from a seed: one pair of snowflake tags in 1,023 is the same.
    const random = createRandom(1)
    let aheadMs = 60_000
    const environment = { ...systemEnvironment, random, now: () => Date.now() + aheadMs }
    const before = await openRedisLog(server.port, { codec, clock: 'hub' }, environment)
    const lost = (await before.publish('a', '1', '2', '3')).map(before.idOf)
    await before.log.close()
    await operate(server.port, 'FLUSHALL')
    aheadMs = 0
    const hub = await openRedisLog(server.port, { codec, clock: 'hub' }, environment)
    aheadMs = 120_000
    const news = (await hub.publish('a', '4', '5')).map(hub.idOf)
    for (const id of lost) expect(await hub.judge(id)).toBe('epoch')
    for (const id of news) expect(await hub.judge(id)).toBe('ok')
  },
)
