import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startProgram } from '../../support/program.ts'
import { proxyKindNames } from '../../support/proxies/kinds.ts'
import { checkConfiguration, freePort, shippedConfiguration, startProxy } from '../../support/proxies/proxy.ts'
import { startRedis } from '../../support/redis-server.ts'
import type { ServerProcess } from '../../support/server-process.ts'
import { until } from '../../support/until.ts'
import { type Crowd, openCrowd } from './crowd.ts'

// One restart of both hubs serves all proxies, each with its own readers and publishers: it takes most of the time.
describe('two hubs on one Redis, restarted one right after the other, behind the configuration that we ship', () => {
  const crowds = new Map<string, Crowd>()
  const endings: (() => unknown)[] = []

  beforeAll(async () => {
    const redis = await startRedis()
    endings.push(() => redis.remove())
    const hubs = await Promise.all([startHub(redis.port), startHub(redis.port)])
    endings.push(() => Promise.all(hubs.map((hub) => hub.kill())))
    const ports = [hubs[0].port, hubs[1].port] as const
    const proxies = await Promise.all(
      proxyKindNames.map((name) => startProxy(name, ports, shippedConfiguration(name, 'twoHubs'))),
    )
    endings.push(() => Promise.all(proxies.map((proxy) => proxy.stop())))
    endings.push(() => {
      for (const crowd of crowds.values()) crowd.close()
    })
    // One after the other: all of them at once are more than a hub's queue of new connections holds.
    for (const [index, name] of proxyKindNames.entries()) {
      const crowd = openCrowd(proxies[index]?.url ?? '', name, 1 + index)
      crowds.set(name, crowd)
      const areConnected = () => crowd.readers.every(({ isConnected }) => isConnected)
      await until(`all readers of ${name} are connected`, areConnected, 30_000)
    }
    const all = [...crowds.values()]

    const stops = all.map((crowd) => crowd.startPublishing())
    await hubs[0].restart()
    // As the guide says: until the proxy has seen that the first hub is back.
    await setTimeout(2000)
    await hubs[1].restart()
    await Promise.all(stops.map((stop) => stop()))
    await until(
      'all readers have returned and have as many events as were acknowledged',
      () => all.every((crowd) => crowd.readers.every((reader) => missing(crowd, reader) === 0)),
      30_000,
    ).catch(() => undefined)
  }, 180_000)
  afterAll(async () => {
    for (const end of endings.reverse()) await end()
  })

  test.each(proxyKindNames)('%s takes it', async (name) => {
    await checkConfiguration(name, shippedConfiguration(name, 'twoHubs'))
  })

  test.each(['haproxy', 'caddy'])('%s answers at least nine publishes of ten with 201, without a retry', (name) => {
    const { publishes } = crowds.get(name) as Crowd
    const all = [...publishes.values()].reduce((sum, count) => sum + count, 0)
    // On an overloaded machine a check can go without an answer for so long that both hubs count as away.
    expect(publishes.get('201')).toBeGreaterThan(all * 0.9)
  })

  test.each(['nginx', 'apache', 'varnish'])('%s answers every publish with 201, without a retry', (name) => {
    const { publishes } = crowds.get(name) as Crowd
    expect(Object.fromEntries(publishes)).toEqual({ 201: expect.any(Number) })
    expect(publishes.get('201')).toBeGreaterThan(100)
  })

  test.each(proxyKindNames)('%s gives every returning EventSource its stream, with status 200', (name) => {
    const { opens } = crowds.get(name) as Crowd
    expect(Object.fromEntries(opens)).toEqual({ 200: expect.any(Number) })
    // Each reader opens one, and returns at least once: its first hub was stopped.
    expect(opens.get('200')).toBeGreaterThanOrEqual(600)
  })

  test.each(proxyKindNames)('%s loses and doubles no event of 300 readers', (name) => {
    const { readers, acknowledged } = crowds.get(name) as Crowd
    for (const { channel, got, hadGap } of readers) {
      expect(hadGap).toBe(false)
      expect([...got].sort((one, other) => one - other)).toEqual(
        acknowledged.get(channel)?.toSorted((one, other) => one - other),
      )
    }
  })
})

interface RunningHub {
  readonly port: number
  /** Stops it as a supervisor does, and starts it again. Resolves when it is ready. */
  restart(): Promise<void>
  kill(): Promise<unknown>
}

async function startHub(redisPort: number): Promise<RunningHub> {
  const port = await freePort()
  const env = { REJOIN_LOG: `redis://127.0.0.1:${redisPort}`, REJOIN_TRUST_PROXY: 'true' }
  const start = () => startProgram({ port, env })
  let hub: ServerProcess = await start()
  return {
    port,
    async restart() {
      await hub.stop()
      hub = await start()
      while ((await fetch(`http://127.0.0.1:${port}/readyz`)).status !== 200) {}
    },
    kill: () => hub.kill(),
  }
}

function missing({ acknowledged }: Crowd, { channel, got }: { channel: string; got: readonly number[] }): number {
  return (acknowledged.get(channel)?.length ?? 0) - got.length
}
