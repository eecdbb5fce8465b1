import 'reflect-metadata'
import type { RequestListener } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { Controller, Headers, type MessageEvent, Module, Param, Sse } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { createHub, type Hub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { createTRPCClient, httpSubscriptionLink } from '@trpc/client'
import { initTRPC, tracked } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import { EventSource } from 'eventsource'
import { from, mergeMap, Observable } from 'rxjs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { serveListener, type TestServer } from '../../support/http-server.ts'
import { publish } from '../../support/publishing.ts'

/** What both recipes promise: a stream of somebody else's making that resumes, and leaves nothing behind. */
function recipe(path: string, serve: (hub: Hub) => Promise<RequestListener>, dataOf: (data: string) => unknown): void {
  async function start(): Promise<TestServer> {
    const hub = await createHub({ log: memoryLog() })
    return serveListener(hub, await serve(hub))
  }

  const published = (events: { data: string }[]) =>
    events.map(({ data }) => dataOf(data)).filter((data) => typeof data === 'number')

  test('goes on where it was cut', async () => {
    const { hub, open } = await start()
    const connected = new Promise((resolve) => void hub.on('connect', resolve))
    const first = await open(path)
    await connected
    await publish(hub, 'orders/42', 1, 2, 3)
    await first.waitFor((events) => published(events).length === 3)
    const second = first.events.find(({ data }) => dataOf(data) === 2)?.id as string
    first.cut()
    const resumed = await open(path, { 'Last-Event-ID': second })
    await publish(hub, 'orders/42', 4)
    await resumed.waitFor((events) => published(events).length === 2)
    expect(published(resumed.events)).toEqual([3, 4])
  })

  test('a reader that leaves is noticed, although nothing happens', async () => {
    const { hub, open } = await start()
    const connected = new Promise((resolve) => void hub.on('connect', resolve))
    const closed = new Promise((resolve) => void hub.on('close', resolve))
    const stream = await open(path)
    await connected
    stream.cut()
    expect(await closed).toMatchObject({ reason: 'disconnected' })
  })

  test('says that something is gone', async () => {
    const { open } = await start()
    const stream = await open(path, { 'Last-Event-ID': 'nonsense' })
    await stream.waitFor((_events, text) => text.includes('unknown-id'))
  })
}

describe('a subscription of tRPC', () => {
  function routerOf(hub: Hub) {
    const t = initTRPC.create()
    return t.router({
      order: t.procedure
        .input((value) => value as { id: string; lastEventId?: string | null })
        .subscription(async function* ({ input, signal }) {
          const { id: order, lastEventId: cursor } = input
          for await (const { id, type, data } of hub.stream(`orders/${order}`, { from: cursor ?? null, signal })) {
            if (id !== null) yield tracked(id, { type, data: parsed(data) })
            if (type === 'close' && JSON.parse(data).reason !== 'finished') {
              throw new DOMException('The hub sends its readers away. They come back.', 'AbortError')
            }
          }
        }),
    })
  }

  function parsed(data: string): unknown {
    try {
      return JSON.parse(data)
    } catch {
      return data
    }
  }

  async function serve(hub: Hub): Promise<RequestListener> {
    const router = routerOf(hub)
    return getRequestListener((req) => fetchRequestHandler({ endpoint: '/trpc', req, router }))
  }

  const input = encodeURIComponent(JSON.stringify({ id: '42' }))
  recipe(`/trpc/order?input=${input}`, serve, (data) => {
    const { type, data: value } = (data === '' ? {} : JSON.parse(data)) as { type?: string; data?: unknown }
    return type === 'message' ? value : undefined
  })

  /** What tRPC's own client hands to a program. */
  function subscribe(url: string) {
    type Router = ReturnType<typeof routerOf>
    const link = httpSubscriptionLink({ url, EventSource })
    const client = createTRPCClient<Router>({ links: [link] })
    const received: unknown[] = []
    const ended: unknown[] = []
    const waiting = new Set<() => void>()
    const { unsubscribe } = client.order.subscribe(
      { id: '42' },
      {
        onData({ data }) {
          received.push(data)
          for (const look of waiting) look()
        },
        onComplete: () => void ended.push('complete'),
        onError: (error) => void ended.push(error),
      },
    )
    onTestFinished(unsubscribe)
    const waitFor = (type: string, value?: unknown) =>
      new Promise<void>((resolve) => {
        const look = () => {
          const isThere = received.some((event) => {
            const { type: got, data } = event as { type: string; data: unknown }
            return got === type && (value === undefined || data === value)
          })
          if (!isThere) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      })
    const values = () =>
      received.flatMap((event) => {
        const { type, data } = event as { type: string; data: unknown }
        return type === 'message' ? [data] : []
      })
    return { values, ended, waitFor }
  }

  test("tRPC's own client is back after a drain, and misses nothing of the time between", async () => {
    const hub = await createHub({ log: memoryLog() })
    const { url } = await serveListener(hub, await serve(hub))
    const client = subscribe(url('/trpc'))
    await client.waitFor('hello')
    await publish(hub, 'orders/42', 1)
    await client.waitFor('message', 1)
    // One reader is sent away, as by a drain, and something happens before it is back.
    for (const { connection } of hub.admin.connections()) hub.admin.disconnectHere(connection, { reason: 'drain' })
    await publish(hub, 'orders/42', 2)
    await client.waitFor('message', 2)
    await publish(hub, 'orders/42', 3)
    await client.waitFor('message', 3)
    expect([client.values(), client.ended]).toEqual([[1, 2, 3], []])
  })

  test("tRPC's own client gets text that is no JSON as it is, and goes on", async () => {
    const hub = await createHub({ log: memoryLog() })
    const { url } = await serveListener(hub, await serve(hub))
    const client = subscribe(url('/trpc'))
    await client.waitFor('hello')
    await hub.publish('orders/42', { text: 'not { JSON' })
    await publish(hub, 'orders/42', 2)
    await client.waitFor('message', 2)
    expect(client.values()).toEqual(['not { JSON', 2])
  })

  test("tRPC's own client is told that it is complete when its channel has ended", async () => {
    const hub = await createHub({ log: memoryLog() })
    const { url } = await serveListener(hub, await serve(hub))
    const client = subscribe(url('/trpc'))
    await client.waitFor('hello')
    await hub.end('orders/42')
    await client.waitFor('close')
    await expect.poll(() => client.ended).toEqual(['complete'])
  })
})

describe('an @Sse of NestJS', () => {
  function events(hub: Hub, order: string, cursor?: string): Observable<MessageEvent> {
    return new Observable((subscriber) => {
      const abort = new AbortController()
      from(hub.stream(`orders/${order}`, { from: cursor ?? null, signal: abort.signal }))
        .pipe(mergeMap(({ id, type, data }) => (id === null ? [] : [{ id, type, data }])))
        .subscribe(subscriber)
      return () => abort.abort()
    })
  }

  /** The decorators are called by hand: the TypeScript here is erased, not compiled. */
  async function serve(hub: Hub): Promise<RequestListener> {
    class Orders {
      events(order: string, cursor?: string): Observable<MessageEvent> {
        return events(hub, order, cursor)
      }
    }
    const method = Object.getOwnPropertyDescriptor(Orders.prototype, 'events') as PropertyDescriptor
    Sse('orders/:id/events')(Orders.prototype, 'events', method)
    Param('id')(Orders.prototype, 'events', 0)
    Headers('last-event-id')(Orders.prototype, 'events', 1)
    Controller()(Orders)
    class Application {}
    Module({ controllers: [Orders] })(Application)
    return listenerOf(Application)
  }

  recipe('/orders/42/events', serve, (data) => (/^\d+$/.test(data) ? Number(data) : undefined))

  test('the handler of Node serves a hub inside a NestJS application', async () => {
    class Application {}
    Module({})(Application)
    const hub = await createHub({ log: memoryLog() })
    const { open } = await serveListener(hub, await listenerOf(Application, hub))
    const stream = await open('/events/a')
    await publish(hub, 'a', 1)
    await stream.waitFor((received) => received.length === 2)
  })

  async function listenerOf(application: new () => object, hub?: Hub): Promise<RequestListener> {
    const app = await NestFactory.create(application, { logger: false })
    if (hub) app.use(nodeHandler(hub))
    await app.init()
    return app.getHttpAdapter().getInstance() as RequestListener
  }
})
