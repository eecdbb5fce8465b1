import { redisLog } from '@rejoin/hub/redis'
import { Redis } from 'ioredis'
import { SignJWT } from 'jose'
import { serve } from 'rejoin'
import { expect, onTestFinished, test } from 'vitest'
import { startRedis } from '../support/redis-server.ts'
import { openRoundRobin } from '../support/round-robin.ts'
import { openTab } from './support/open-tab.ts'
import { sharedChromium } from './support/shared-chromium.ts'

const chromium = sharedChromium()
const secret = 'kY7ryw1QsbCOpzUe3vT9aLxgF0mDJnh4'

test('the browser’s EventSource opens with a ticket each time, whichever of two hubs issued it, and gets events', async (context) => {
  const redis = await startRedis()
  onTestFinished(() => redis.remove())
  const hubs = await Promise.all([hubOn(redis.port), hubOn(redis.port)])
  const proxy = await openRoundRobin(hubs.map(({ url }) => url))
  onTestFinished(() => proxy.close())
  const page = await openTab(context, chromium.tabs)
  await page.goto(`${proxy.url}/healthz`)
  const token = await new SignJWT({ rejoin: { subscribe: ['orders'] } })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject('ada')
    .setExpirationTime('10m')
    .sign(Buffer.from(secret))
  const opened = await page.evaluate(async (token) => {
    const outcomes: string[] = []
    for (let count = 0; count < 4; count += 1) {
      const headers = { authorization: `Bearer ${token}` }
      const { ticket } = await (await fetch('/ticket', { method: 'POST', headers })).json()
      const source = new EventSource(`/events/orders?ticket=${ticket}`)
      Object.assign(globalThis, { got: [] })
      source.addEventListener('message', ({ data }) => (globalThis as unknown as { got: string[] }).got.push(data))
      outcomes.push(
        await new Promise((resolve) => {
          source.addEventListener('hello', () => resolve('open'))
          source.onerror = () => resolve('rejected')
        }),
      )
    }
    return outcomes
  }, token)
  expect(opened).toEqual(['open', 'open', 'open', 'open'])
  await hubs[0]?.hub.publish('orders', { data: 'shipped' })
  await page.waitForFunction(() => (globalThis as unknown as { got: string[] }).got.length > 0)
})

async function hubOn(port: number) {
  const log = redisLog(new Redis({ port, lazyConnect: true }), { onWarning: () => undefined })
  const serving = await serve({ port: 0, log, access: { jwt: [{ secret }] } })
  onTestFinished(() => serving.close({ withinMs: 0 }))
  return serving
}
