import type { Hub } from '@rejoin/hub'
import { createIdFormats, ulid } from '@rejoin/protocol'
import { expect, test } from 'vitest'
import type { Figures } from '../../src/monitoring/figures.ts'
import { createNodes } from '../../src/monitoring/nodes.ts'

test('hubs on one log know of each other, with the figures of each', async () => {
  const log = sharedLog()
  const [one, other] = [createNodes(log.seenBy('one')), createNodes(log.seenBy('other'))]
  one.tell(figures({ node: 'a 1', at: 1000, live: 3, deliveries: 10 }))
  other.tell(figures({ node: 'b 2', at: 1000, live: 5, deliveries: 10 }))
  await log.settled()
  expect(other.known).toMatchObject([
    { name: 'a 1', connections: 3, deliveriesPerSecond: 0 },
    { name: 'b 2', connections: 5 },
  ])
  one.tell(figures({ node: 'a 1', at: 2000, live: 4, deliveries: 20 }))
  expect(log.told).toBe(2)
  one.tell(figures({ node: 'a 1', at: 6000, live: 4, deliveries: 1010 }))
  await log.settled()
  expect(one.known).toMatchObject([{ name: 'a 1', connections: 4, deliveriesPerSecond: 200 }, { name: 'b 2' }])
})

test('no other hub is known while the log does not answer', async () => {
  const log = sharedLog()
  const nodes = createNodes(log.seenBy('one'))
  nodes.tell(figures({ at: 1000 }))
  await log.settled()
  expect(nodes.known).toHaveLength(1)
  log.isAway = true
  nodes.tell(figures({ at: 6000 }))
  await log.settled()
  expect(nodes.known).toEqual([])
})

test.each(['{"name":"of another version"}', 'v2;host=x', 'null', '1'])(
  'a note that this version cannot read is left out, and ends nothing: %s',
  async (note) => {
    const log = sharedLog()
    const nodes = createNodes(log.seenBy('one'))
    log.notes.set('other', note)
    nodes.tell(figures({ at: 1000 }))
    await log.settled()
    expect(nodes.known).toMatchObject([{ name: 'a 1' }])
  },
)

test('a clock that was set back keeps no hub from telling', async () => {
  const log = sharedLog()
  const nodes = createNodes(log.seenBy('one'))
  nodes.tell(figures({ at: 3_600_000 }))
  nodes.tell(figures({ at: 1000 }))
  expect(log.told).toBe(2)
})

test('a log that only one hub can use has no others', () => {
  const { meet: _, ...log } = sharedLog().seenBy('one').log
  expect(createNodes({ log }).known).toBeNull()
})

function sharedLog() {
  const log = {
    notes: new Map<string, string>(),
    told: 0,
    isAway: false,
    /** What a note was answered with has been read. */
    settled: () => new Promise(setImmediate),
    seenBy: (hub: string): Pick<Hub, 'log'> => ({
      log: {
        ...{ name: 'shared', durability: 'disk', window: { maxEvents: 1, maxAgeMs: 1, maxBytes: 1 } },
        formats: createIdFormats([{ codec: ulid() }]),
        async meet(note) {
          if (log.isAway) throw new Error('away')
          log.told += 1
          log.notes.set(hub, note)
          return [...log.notes.values()]
        },
      },
    }),
  }
  return log
}

function figures({ node = 'a 1', at = 0, live = 0, deliveries = 0 }): Figures {
  return {
    ...{ node, at, startedAt: 0, version: '1.2.3', readers: { live, replaying: 0, slow: 0 } },
    ...{ totals: { events: 0, deliveries, bytes: 0 }, process: { cpuMs: 0, rssBytes: 1, lateMs: 0 } },
  } as Figures
}
