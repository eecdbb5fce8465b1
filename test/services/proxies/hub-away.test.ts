import { once } from 'node:events'
import { type IncomingHttpHeaders, request } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startProgram } from '../../support/program.ts'
import { proxyKindNames } from '../../support/proxies/kinds.ts'
import { type FrontProxy, freePort, shippedConfiguration, startProxy } from '../../support/proxies/proxy.ts'
import { startRedis } from '../../support/redis-server.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { until } from '../../support/until.ts'
import { addressesIn, type Crowd, openCrowd } from './crowd.ts'

const withoutVarnish = proxyKindNames.filter((name) => name !== 'varnish')

// One hub serves all proxies, each with its own readers.
describe('one hub that is killed and started again, behind the configuration that we ship', () => {
  const crowds = new Map<string, Crowd>()
  const statuses = new Map<string, Answer>()
  const fromOtherOrigins = new Map<string, Answer>()
  const endings: (() => unknown)[] = []

  beforeAll(async () => {
    const { folder, remove } = temporaryFolder()
    endings.push(remove)
    const port = await freePort()
    const start = () => startProgram({ port, directory: folder, env: { REJOIN_TRUST_PROXY: 'true' } })
    let hub = await start()
    endings.push(() => hub.kill())
    const proxies = await Promise.all(
      proxyKindNames.map((name) => startProxy(name, port, shippedConfiguration(name, 'shipped'))),
    )
    endings.push(() => Promise.all(proxies.map((proxy) => proxy.stop())))
    for (const [index, name] of proxyKindNames.entries()) {
      const crowd = openCrowd(proxies[index]?.url ?? '', name, addressesIn(11 + index), 30)
      endings.push(() => crowd.close())
      crowds.set(name, crowd)
    }
    const all = [...crowds.values()]
    const areConnected = () => all.every(({ readers }) => readers.every(({ isConnected }) => isConnected))
    await until('all readers are connected', areConnected, 30_000)

    await hub.kill()
    await until(
      'all readers have returned in vain',
      () => all.every(({ opens }) => sum(opens) >= 2 * 30),
      // HAProxy and Caddy wait for the hub before they answer.
      60_000,
    )
    await Promise.all(
      proxyKindNames.map(async (name, index) => {
        const stream = `${proxies[index]?.url}/events/${name}/0`
        statuses.set(name, await ask(`${stream}?reject=status`))
        fromOtherOrigins.set(name, await ask(stream, { origin: 'https://app.example' }))
      }),
    )
    hub = await start()
    const stops = all.map((crowd) => crowd.startPublishing())
    await until('all readers are back', areConnected, 60_000).catch(() => undefined)
    await Promise.all(stops.map((stop) => stop()))
    const haveAll = ({ readers, acknowledged }: Crowd) =>
      readers.every(({ channel, got }) => got.length === acknowledged.get(channel)?.length)
    await until('all readers have all events', () => all.every(haveAll), 30_000).catch(() => undefined)
  }, 240_000)
  afterAll(async () => {
    for (const end of endings.reverse()) await end()
  })

  test.each(withoutVarnish)('%s tells every native EventSource to return, with status 200', (name) => {
    expect([...(crowds.get(name)?.opens.keys() ?? [])]).toEqual(['200'])
  })

  test('varnish cuts them off instead, after which a native EventSource returns too', () => {
    const keys = [...(crowds.get('varnish')?.opens.keys() ?? [])]
    expect(keys.filter((key) => key !== '200' && key !== 'ECONNRESET')).toEqual([])
  })

  test.each(proxyKindNames)('%s brings all readers back, and they miss no event', (name) => {
    const { readers, acknowledged } = crowds.get(name) as Crowd
    for (const { channel, isConnected, got, hadGap } of readers) {
      expect({ isConnected, hadGap }).toEqual({ isConnected: true, hadGap: false })
      expect([...got].sort(byNumber)).toEqual(acknowledged.get(channel)?.toSorted(byNumber))
    }
  })

  test.each(withoutVarnish)('%s answers a client that asks for the status with 502 or 503', (name) => {
    expect(statuses.get(name)?.status).toMatch(/^50[23]$/)
  })

  test.each(withoutVarnish)('%s lets a page of another origin read that it is to return', (name) => {
    const { status, headers } = fromOtherOrigins.get(name) as Answer
    expect(status).toBe('200')
    expect(headers).toMatchObject({
      'content-type': expect.stringContaining('text/event-stream'),
      'access-control-allow-origin': 'https://app.example',
      'access-control-allow-credentials': 'true',
    })
  })
})

describe('two hubs on one Redis, behind the configuration that we ship', () => {
  const publishes = new Map<string, Map<string, number>>()
  const opens = new Map<string, Map<string, number>>()
  const endings: (() => unknown)[] = []

  beforeAll(async () => {
    const redis = await startRedis()
    endings.push(() => redis.remove())
    const ports = [await freePort(), await freePort()] as const
    const env = { REJOIN_LOG: `redis://127.0.0.1:${redis.port}`, REJOIN_TRUST_PROXY: 'true' }
    const hubs = await Promise.all(ports.map((port) => startProgram({ port, env })))
    endings.push(() => Promise.all(hubs.map((hub) => hub.kill())))
    const proxies = await Promise.all(
      proxyKindNames.map((name) => startProxy(name, ports, shippedConfiguration(name, 'twoHubs'))),
    )
    endings.push(() => Promise.all(proxies.map((proxy) => proxy.stop())))
    const each = (ask: (name: string, proxy: FrontProxy) => Promise<unknown>) =>
      Promise.all(proxyKindNames.map((name, index) => ask(name, proxies[index] as FrontProxy)))

    // Each proxy has readers and kept connections at both hubs when one of them dies.
    const crowds = proxies.map(({ url }, index) =>
      openCrowd(url, proxyKindNames[index] ?? '', addressesIn(21 + index), 20),
    )
    endings.push(() => crowds.forEach((crowd) => void crowd.close()))
    const areConnected = () => crowds.every(({ readers }) => readers.every(({ isConnected }) => isConnected))
    await until('all readers are connected', areConnected, 30_000)
    await each((name, { url }) => publishTimes(20, `${url}/publish/${name}`))
    await hubs[0]?.kill()
    await each(async (name, { url }) => publishes.set(name, await publishTimes(60, `${url}/publish/${name}`)))
    await redis.stop()
    await each(async (name, { url }) => opens.set(name, await openFor(4000, `${url}/events/${name}`)))
  }, 240_000)
  afterAll(async () => {
    for (const end of endings.reverse()) await end()
  })

  const withoutCaddy = proxyKindNames.filter((name) => name !== 'caddy')
  test.each(withoutCaddy)('%s sends every publish to the other hub after one was killed', (name) => {
    expect(Object.fromEntries(publishes.get(name) ?? [])).toEqual({ 201: 60 })
  })

  test('caddy loses a few publishes at a hub that was killed, until its check has found that', () => {
    expect(publishes.get('caddy')?.get('201')).toBeGreaterThanOrEqual(50)
  })

  test.each(withoutVarnish)('%s gives an EventSource status 200 while Redis is away and no hub is ready', (name) => {
    expect([...(opens.get(name)?.keys() ?? [])]).toEqual(['200'])
  })
})

interface Answer {
  /** The status, or the code of the error. */
  readonly status: string
  readonly headers: IncomingHttpHeaders
}

/** The head of the answer; the rest is not read. */
async function ask(
  url: string,
  headers: Record<string, string> = {},
  { method, body }: { method?: string; body?: string } = {},
): Promise<Answer> {
  const asked = request(url, { method, headers, agent: false })
  asked.end(body)
  try {
    const [response] = await once(asked, 'response')
    return { status: String(response.statusCode), headers: response.headers }
  } catch (error) {
    return { status: String((error as NodeJS.ErrnoException).code), headers: {} }
  } finally {
    asked.destroy()
  }
}

/** One after the other, without a retry. */
async function publishTimes(times: number, url: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for (let number = 0; number < times; number += 1) {
    const { status } = await ask(url, {}, { method: 'POST', body: String(number) })
    counts.set(status, (counts.get(status) ?? 0) + 1)
  }
  return counts
}

/** Long enough for a proxy to notice that no hub is ready any more. */
async function openFor(ms: number, url: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  const end = performance.now() + ms
  while (performance.now() < end) {
    const { status } = await ask(url, { accept: 'text/event-stream' })
    counts.set(status, (counts.get(status) ?? 0) + 1)
    await setTimeout(50)
  }
  return counts
}

function sum(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((all, count) => all + count, 0)
}

function byNumber(one: number, other: number): number {
  return one - other
}
