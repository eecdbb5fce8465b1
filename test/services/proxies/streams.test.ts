import { type ClientRequest, get } from 'node:http'
import { connect, type EventStream } from '@rejoin/client'
import { type Serving, serve } from 'rejoin'
import { describe, expect, type TestContext, test } from 'vitest'
import { type ProxyKindName, proxyKindNames } from '../../support/proxies/kinds.ts'
import { checkConfiguration, type FrontProxy, shippedConfiguration, startProxy } from '../../support/proxies/proxy.ts'
import { manualClock } from './manual-clock.ts'
import { planted } from './planted.ts'

// Varnish compiles its configuration with gcc at every start.
describe.concurrent('the configuration that we ship', { timeout: 120_000 }, () => {
  test.each(proxyKindNames)('is accepted by %s itself', async (name) => {
    await checkConfiguration(name, shippedConfiguration(name))
  })

  test.for(proxyKindNames)('loses no event when %s is reloaded and restarted', async (name, context) => {
    const { expect } = context
    const { hub, proxy } = await openStage(context, name, shippedConfiguration(name))
    const reader = startReading(context, connect(`${proxy.url}/events/demo`, { maxRetryMs: 500 }))
    await expect.poll(() => hub.hub.readers('demo')).toBe(1)
    const publish = startPublishing(hub)
    await publish(20)
    await expect.poll(() => reader.data).toHaveLength(20)
    await proxy.reload()
    await publish(20)
    const restarted = proxy.restart()
    await publish(20)
    await restarted
    const published = await publish(20)
    // A proxy that asks for the health of the hub may take some seconds to trust it again.
    await expect.poll(() => reader.data, { timeout: 90_000 }).toEqual(published)
  })

  test('for nginx tells a flood of reconnects to return later, with a status that EventSource survives', async (context) => {
    const { proxy } = await openStage(context, 'nginx', shippedConfiguration('nginx'))
    const asked: ClientRequest[] = []
    context.onTestFinished(() => {
      for (const request of asked) request.destroy()
    })
    const rejected = new Promise<{ status: number | undefined; text: string }>((resolve) => {
      for (let n = 0; n < 320; n += 1) {
        const request = get(`${proxy.url}/events/demo`, { agent: false }, async (response) => {
          const isStream = response.headers['x-accel-buffering'] !== undefined || response.headers.vary !== undefined
          if (isStream) return void response.resume()
          let text = ''
          for await (const piece of response.setEncoding('utf8')) text += piece
          resolve({ status: response.statusCode, text })
        })
        request.on('error', () => undefined)
        asked.push(request)
      }
    })
    const { status, text } = await rejected
    expect(status).toBe(200)
    expect(text).toBe('retry: 15000\nevent: close\ndata: {"reason":"overloaded"}\n\n')
  })
})

describe.concurrent('our client helps itself', () => {
  test('behind HAProxy that strips the cursor’s header: the cursor travels in the query, and nothing is lost', async (context) => {
    const { expect } = context
    const { proxy: name, configuration } = planted['header-cursor']!
    const { hub, proxy } = await openStage(context, name, configuration)
    const addresses: string[] = []
    const reader = startReading(
      context,
      connect(`${proxy.url}/events/demo`, {
        maxRetryMs: 500,
        fetch: (input, init) => {
          addresses.push(String(input))
          return fetch(input, init)
        },
      }),
    )
    await expect.poll(() => hub.hub.readers('demo')).toBe(1)
    const publish = startPublishing(hub)
    await publish(10)
    await expect.poll(() => reader.data).toHaveLength(10)
    for (const { connection } of hub.hub.admin.connections())
      hub.hub.admin.disconnectHere(connection, { reason: 'admin', retryMs: 100 })
    const published = await publish(10)
    await expect.poll(() => reader.data).toEqual(published)
    expect(addresses.at(-1)).toContain('lastEventId=')
  })

  test('behind nginx that holds streams back: it polls, and nothing is lost', async (context) => {
    const { expect } = context
    const { proxy: name, configuration } = planted.stream!
    const { hub, proxy } = await openStage(context, name, configuration)
    const clock = manualClock()
    const stream = connect(`${proxy.url}/events/demo`, { from: 'earliest', clock, maxRetryMs: 1000 })
    const reader = startReading(context, stream)
    const publish = startPublishing(hub)
    await publish(5)
    for (let streams = 1; stream.state.transport !== 'long-poll'; streams += 1) {
      // It is not for want of time that nothing arrives: the hub has sent, and time stands still.
      await expect.poll(() => hub.hub.readers('demo')).toBe(1)
      expect(reader.data).toEqual([])
      expect(streams).toBeLessThan(5)
      await passUntil(() => stream.state.state === 'backoff', clock)
      await expect.poll(() => hub.hub.readers('demo')).toBe(0)
      await passUntil(() => stream.state.state === 'connecting', clock)
    }
    const published = await publish(5)
    await expect.poll(() => reader.data).toEqual(published)
  })
})

interface Stage {
  readonly hub: Serving
  readonly proxy: FrontProxy
}

async function openStage({ onTestFinished }: TestContext, name: ProxyKindName, configuration: string): Promise<Stage> {
  const hub = await serve({ port: 0, hub: { retryMs: 200 } })
  onTestFinished(() => hub.close())
  const proxy = await startProxy(name, Number(new URL(hub.url).port), configuration)
  onTestFinished(() => proxy.stop())
  return { hub, proxy }
}

function startReading({ onTestFinished }: TestContext, stream: EventStream): { readonly data: unknown[] } {
  const data: unknown[] = []
  stream.on('message', (event) => data.push(event.data))
  onTestFinished(() => stream.close())
  return { data }
}

/** Publishes the next numbers, and gives all so far. */
function startPublishing({ hub }: Serving): (count: number) => Promise<number[]> {
  const published: number[] = []
  return async (count) => {
    for (let n = 0; n < count; n += 1) {
      const data = published.length
      await hub.publish('demo', { data })
      published.push(data)
    }
    return published
  }
}

async function passUntil(isSo: () => boolean, clock: ReturnType<typeof manualClock>): Promise<void> {
  for (let passed = 0; passed < 300_000 && !isSo(); passed += 100) clock.advance(100)
  expect(isSo()).toBe(true)
}
