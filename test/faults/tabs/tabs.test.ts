import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub, type Hub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { createRandom } from '@rejoin/hub/testing'
import { expect, onTestFinished, test } from 'vitest'
import { type FaultProxy, openFaultProxy } from '../../support/fault-proxy/fault-proxy.ts'
import { until } from '../../support/until.ts'
import { type Browser, openBrowser, type Tab, type TabView } from './browser.ts'

// Tabs are threads here, so that one can be killed or hang while the others go on. In Chromium: test/browser/tabs.test.ts.

const patience = 30_000

test('five tabs read through one connection, and all get every event', async () => {
  const stage = await openStage()
  const tabs = await stage.openTabs(5)
  await stage.publish(20)
  for (const view of await stage.viewsAt(tabs, 20)) expect(view).toMatchObject({ numbers: range(1, 20), gaps: [] })
  expect(stage.readers()).toBe(1)
})

test('a tab that comes later starts with what happens next, without a connection of its own', async () => {
  const stage = await openStage()
  await stage.openTabs(1)
  await stage.publish(5)
  const [late] = await stage.openTabs(1)
  await stage.publish(5)
  expect((await stage.viewsAt([late!], 10))[0]).toMatchObject({ numbers: range(6, 10), gaps: [] })
  expect(stage.requests()).toBe(1)
})

test('a tab with an older cursor reads what it lacks itself, and follows from there', async () => {
  const stage = await openStage()
  const [first] = await stage.openTabs(1)
  const ids = await stage.publish(10)
  await stage.viewsAt([first!], 10)
  const [back] = await stage.openTabs(1, ids[3])
  expect((await stage.viewsAt([back!], 10))[0]).toMatchObject({ numbers: range(5, 10), gaps: [] })
  await until('one connection is left', () => stage.readers() === 1, patience)
  await stage.publish(5)
  expect((await stage.viewsAt([back!], 15))[0]).toMatchObject({ numbers: range(5, 15), gaps: [] })
})

test('tabs of two users do not share', async () => {
  const stage = await openStage()
  await stage.openTabs(2, null, 'anna')
  await stage.openTabs(1, null, 'ben')
  expect(stage.readers()).toBe(2)
})

test('events are still told as gone when the tab that reads is told so', async () => {
  const stage = await openStage()
  const tabs = await stage.openTabs(3)
  await stage.publish(2)
  await stage.viewsAt(tabs, 2)
  await stage.hub.invalidate('numbers')
  // What is published before the gap is told counts as reloaded with it.
  for (const tab of tabs) while ((await tab.look()).gaps.length === 0);
  await stage.publish(1)
  for (const view of await stage.viewsAt(tabs, 3)) expect(view).toMatchObject({ numbers: [1, 2, 3], gaps: ['forced'] })
})

test('a tab whose handler never ends gives up leading, also to a tab that comes later', async () => {
  const stage = await openStage()
  const [stuck] = await stage.openTabs(1)
  stuck!.stick()
  // More than a tab holds for its handlers.
  await stage.publish(1500)
  const [other] = await stage.openTabs(1, stage.ids[999])
  await until('the other tab leads', () => other!.leads(), patience)
  const [third] = await stage.openTabs(1, stage.ids[999])
  await stage.publish(1500)
  for (const view of await stage.viewsAt([other!, third!], 3000)) expect(view.numbers).toEqual(range(1001, 3000))
  await until('the others read through one connection', () => stage.readers() === 2, patience)
})

test('a tab that hangs loses the lead, and reads on like the others when it is back', async () => {
  const stage = await openStage()
  const tabs = await stage.openTabs(4)
  const [leader, ...others] = tabs
  await stage.publish(5)
  await stage.viewsAt(tabs, 5)
  leader!.hang(10_000)
  await until('another tab leads', () => others.some((tab) => tab.leads()), patience)
  await stage.publish(5)
  for (const view of await stage.viewsAt(others, 10)) expect(view).toMatchObject({ numbers: range(1, 10), gaps: [] })
  expect(stage.requests()).toBe(2)
  expect((await stage.viewsAt([leader!], 10))[0]).toMatchObject({ numbers: range(1, 10), gaps: [] })
  await until('one connection is left', () => stage.readers() === 1, patience)
})

// More of them: TAB_SEEDS=200.
const seeds = Array.from({ length: Number(process.env.TAB_SEEDS ?? 3) }, (_, index) => index + 1)

test.each(seeds)(
  'killed, closed and hanging tabs and cut connections cost no tab an event, and none comes twice (seed %i)',
  async (seed) => {
    const random = createRandom(seed)
    const stage = await openStage()
    let tabs = await stage.openTabs(3)
    for (let turn = 0; turn < 25; turn += 1) {
      const victim = tabs[Math.floor(random() * tabs.length)]!
      const leader = tabs.find((tab) => tab.leads()) ?? victim
      const move = Math.floor(random() * 8)
      if (move === 0 && tabs.length > 1) tabs = tabs.filter((tab) => tab !== leader || void leader.kill())
      else if (move === 1 && tabs.length > 1) tabs = tabs.filter((tab) => tab !== leader || leader.close())
      else if (move === 2) leader.hang(300)
      else if (move === 3) victim.hang(300)
      else if (move === 7 && turn % 5 === 0) leader.hang(6000)
      else if (move === 4) stage.proxy.cutAll(random() < 0.5 ? 'reset' : 'fin')
      else if (move === 5 && tabs.length < 6) tabs = [...tabs, ...(await stage.openTabs(1, stage.ids.at(-5) ?? null))]
      await stage.publish(1 + Math.floor(random() * 5))
    }
    await stage.publish(1)
    const last = stage.ids.length
    for (const { numbers, gaps } of await stage.viewsAt(tabs, last)) {
      expect({ numbers, gaps }).toEqual({ numbers: range(numbers[0]!, last), gaps: [] })
    }
  },
)

async function openStage(): Promise<Stage> {
  const hub = await createHub({ log: memoryLog(), heartbeatMs: 1000, retryMs: 20 })
  let requests = 0
  const handle = nodeHandler(hub)
  const server = createServer((request, response) => {
    requests += 1
    handle(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy = await openFaultProxy({ target: server.address() as AddressInfo, random: Math.random })
  const browser: Browser = openBrowser()
  onTestFinished(async () => {
    await browser.close()
    await proxy.close()
    await hub.close()
    server.closeAllConnections()
    server.close()
  })
  const ids: string[] = []
  return {
    hub,
    proxy,
    ids,
    requests: () => requests,
    readers: () => [...hub.admin.connections()].length,
    async openTabs(count, from = null, name = 'user') {
      const opened: Tab[] = []
      for (let at = 0; at < count; at += 1) {
        const tab = browser.open(`http://127.0.0.1:${proxy.port}/events/numbers`, { from, name })
        await until('a tab is connected', () => tab.state === 'connected', patience)
        opened.push(tab)
      }
      return opened
    },
    async publish(count) {
      for (let at = 0; at < count; at += 1) ids.push((await hub.publish('numbers', { data: ids.length + 1 })).id)
      return ids
    },
    async viewsAt(tabs, number) {
      const limit = performance.now() + patience
      let views: TabView[] = []
      while (performance.now() < limit) {
        views = await Promise.all(tabs.map((tab) => tab.look()))
        if (views.every(({ numbers }) => numbers.at(-1) === number)) break
      }
      return views
    },
  }
}

interface Stage {
  readonly hub: Hub
  readonly proxy: FaultProxy
  /** Of all events so far. */
  readonly ids: readonly string[]
  /** Requests that have reached the hub. */
  requests(): number
  /** Connections that the hub has. */
  readers(): number
  openTabs(count: number, from?: string | null | undefined, name?: string): Promise<Tab[]>
  /** Publishes the next numbers. */
  publish(count: number): Promise<readonly string[]>
  /** What each of the tabs has, once that ends with the number. */
  viewsAt(tabs: readonly Tab[], number: number): Promise<TabView[]>
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}
