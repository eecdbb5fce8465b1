import { onTestFinished } from 'vitest'
import { type FaultProxy, openFaultProxy } from '../../support/fault-proxy/fault-proxy.ts'
import { type RedisServer, type RedisServerOptions, startRedis } from '../../support/redis-server.ts'

/** A Redis that ends with the test. */
export async function redis(options?: RedisServerOptions): Promise<RedisServer> {
  const server = await startRedis(options)
  onTestFinished(() => server.remove())
  return server
}

/** A proxy before a Redis, which ends with the test. Whoever sets the port of its `target` leads new connections elsewhere. */
export async function between({ port }: { port: number }): Promise<FaultProxy & { target: { port: number } }> {
  const target = { port }
  const proxy = await openFaultProxy({ target, random: Math.random })
  onTestFinished(() => proxy.close())
  return Object.assign(proxy, { target })
}

/** Tries again what fails while Redis is on its way back, until it does not fail. */
export async function eventually<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (const deadline = performance.now() + 20_000; ; ) {
    try {
      return await attempt()
    } catch (error) {
      if (performance.now() > deadline) throw error
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}
