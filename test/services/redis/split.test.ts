import { expect, onTestFinished, test } from 'vitest'
import { comesBack, overAll, readerOf } from '../../support/every-way.ts'
import { startRedis } from '../../support/redis-server.ts'
import { offsetOf } from './opened-log.ts'
import { openClockedHub, startTwoMasters } from './two-masters.ts'

// Two masters at once, and masters whose clocks differ (§2.3): what a reader stands on is a matter of ancestry, not of order.

const clocks = [
  ['the clocks of the masters agree', { promoted: 0, lost: 0, later: 0 }],
  ['the promoted one is behind', { promoted: 30_000, lost: 60_000, later: 40_000 }],
  ['the promoted one is ahead', { promoted: 90_000, lost: 60_000, later: 0 }],
] as const

test.each(clocks)(
  'readers led from one master to the other are told what they lost, and nobody else is: %s',
  async (_, { promoted, lost, later }) => {
    const masters = await startTwoMasters()
    const { one } = masters
    const [torn, quiet] = [readerOf(one.hub, 'a'), readerOf(one.hub, 'b')]
    const kept = await one.publish('a', 'kept')
    const keptOfB = await one.publish('b', 'kept')
    await Promise.all([torn.hears('kept'), quiet.hears('kept')])

    const other = await masters.promote(promoted)
    const follower = readerOf(other.hub, 'b', keptOfB)
    one.pass(lost)
    await one.publish('a', 'lost 1')
    await other.publish('a', 'new 1')
    await other.publish('b', 'new 2')
    const lastLost = await one.publish('a', 'lost 2')
    await torn.hears('lost 2')
    other.pass(later)
    await other.publish('a', 'new 3')
    await masters.moveToPromoted()

    await torn.hears('epoch')
    await other.publish('a', 'new 4')
    await other.publish('b', 'new 5')
    await torn.hears('new 4')
    // It has events that are newer than `new 1`, so it goes on at the head.
    expect(torn.said()).toEqual(['kept', 'lost 1', 'lost 2', 'epoch', 'new 4'])
    await Promise.all([quiet.hears('new 5'), follower.hears('new 5')])
    expect(quiet.said()).toEqual(['kept', 'new 2', 'new 5'])
    expect(follower.said()).toEqual(['new 2', 'new 5'])

    for (const { hub } of [one, other]) {
      // Away since before: `lost 1` and `lost 2` were acknowledged, and it will never get them.
      expect(await comesBack(hub, 'a', kept)).toEqual(overAll(['epoch', 'new 1', 'new 3', 'new 4']))
      expect(await comesBack(hub, 'a', lastLost)).toEqual(overAll(['epoch']))
      expect(await comesBack(hub, 'b', keptOfB)).toEqual(overAll(['new 2', 'new 5']))
      // Its id was that of the other channel's lost event: it lost nothing itself.
      expect(await comesBack(hub, 'b', lastLost)).toEqual(overAll(['new 2', 'new 5']))
    }
    const all = readerOf(other.hub, '*', kept)
    await all.hears('epoch')
  },
)

test.each([
  ['behind', 30_000],
  ['level', 60_000],
])('a replica that takes over with its clock %s tells readers that lost events, by every way', async (_, promoted) => {
  const masters = await startTwoMasters()
  const { one } = masters
  const kept = await one.publish('a', 'kept')
  const [torn, quiet] = [readerOf(one.hub, 'a'), readerOf(one.hub, 'b')]
  const other = await masters.promote(promoted)
  one.pass(60_000)
  const lost = await one.publish('a', 'lost')
  await torn.hears('lost')
  await masters.killMaster()
  await other.publish('b', 'new 1')
  other.pass(40_000)
  await other.publish('b', 'new 2')
  await masters.moveToPromoted()
  await torn.hears('epoch')
  await quiet.hears('new 2')
  expect(quiet.said()).toEqual(['new 1', 'new 2'])
  for (const { hub } of [one, other]) {
    expect(await comesBack(hub, 'a', lost)).toEqual(overAll(['epoch']))
    expect(await comesBack(hub, 'a', kept)).toEqual(overAll(['epoch']))
    expect(await comesBack(hub, 'b', kept)).toEqual(overAll(['new 1', 'new 2']))
  }
})

test('a Redis that lost its newest events tells the readers of the channels concerned, connected or not, and no others', async () => {
  const server = await startRedis({ settings: { appendfsync: 'everysec' } })
  onTestFinished(() => server.remove())
  const [one, other] = [await openClockedHub(server.port, Date.now()), await openClockedHub(server.port, Date.now())]
  const first = await one.publish('a', 'first')
  const [here, elsewhere] = [readerOf(one.hub, 'a'), readerOf(other.hub, ['b', 'c/*'])]
  await expect.poll(async () => (await offsetOf(server.port)) === server.written()).toBe(true)
  const kept = server.written()
  await one.publish('c/1', 'live', { live: true })
  const lost = await one.publish('a', 'lost')
  await here.hears('lost')
  await server.kill()
  server.cutTo(kept)
  await server.start()
  await here.hears('epoch')
  await expect.poll(() => other.publish('b', 'next').then(Boolean, () => false)).toBe(true)
  await one.publish('a', 'next')
  await one.publish('c/1', 'next')
  await here.hears('next')
  await expect.poll(elsewhere.said).toEqual(['live', 'next', 'next'])
  expect(here.said()).toEqual(['lost', 'epoch', 'next'])
  for (const { hub } of [one, other]) {
    expect(await comesBack(hub, 'a', first)).toEqual(overAll(['epoch', 'next']))
    expect(await comesBack(hub, 'a', lost)).toEqual(overAll(['epoch']))
    expect(await comesBack(hub, 'b', first)).toEqual(overAll(['next']))
    expect(await comesBack(hub, 'c/*', lost)).toEqual(overAll(['next']))
    expect(await comesBack(hub, '*', first)).toEqual(overAll(['epoch', 'next', 'next', 'next']))
  }
})

test('a Redis that loses its newest events, and then the record of that, tells all the same', async () => {
  const server = await startRedis({ settings: { appendfsync: 'everysec' } })
  onTestFinished(() => server.remove())
  const one = await openClockedHub(server.port, Date.now())
  const first = await one.publish('a', 'first')
  await expect.poll(async () => (await offsetOf(server.port)) === server.written()).toBe(true)
  const kept = server.written()
  const here = readerOf(one.hub, 'a')
  await one.publish('a', 'lost')
  await here.hears('lost')
  for (let times = 1; times <= 2; times += 1) {
    await server.kill()
    server.cutTo(kept)
    await server.start()
    await expect.poll(() => here.said().filter((each) => each === 'epoch').length).toBe(times)
  }
  expect(await comesBack(one.hub, 'a', first)).toEqual(overAll(['epoch']))
})

test('an acknowledged publish that Redis loses before any tail has it is told to the readers of its channel', async () => {
  const server = await startRedis({ settings: { appendfsync: 'everysec' } })
  onTestFinished(() => server.remove())
  const one = await openClockedHub(server.port, Date.now())
  const first = await one.publish('a', 'first')
  await one.publish('b', 'first')
  await expect.poll(async () => (await offsetOf(server.port)) === server.written()).toBe(true)
  const kept = server.written()
  await one.publish('a', 'lost')
  await server.kill()
  server.cutTo(kept)
  await server.start()
  await expect.poll(() => one.publish('a', 'next').then(Boolean, () => false)).toBe(true)
  expect(await comesBack(one.hub, 'a', first)).toEqual(overAll(['epoch', 'next']))
  expect(await comesBack(one.hub, 'b', first)).toEqual(overAll(['first']))
})
