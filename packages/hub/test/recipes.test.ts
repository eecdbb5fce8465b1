import 'reflect-metadata'
import type { RequestListener } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { Controller, Headers, type MessageEvent, Module, Param, Sse } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { createHub, createSubscription, type Hub, type SubscribeRequest } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { initTRPC, tracked } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import { from, mergeMap, Observable } from 'rxjs'
import { describe, expect, test } from 'vitest'
import { serveListener, type TestServer } from './http-server.ts'
import { publish } from './publishing.ts'

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
  async function serve(hub: Hub): Promise<RequestListener> {
    const t = initTRPC.create()
    const router = t.router({
      order: t.procedure
        .input((value) => value as { id: string; lastEventId?: string | null })
        .subscription(async function* ({ input, signal }) {
          const { id: order, lastEventId: cursor } = input
          const request: SubscribeRequest = {
            subscription: createSubscription([`orders/${order}`]),
            start: cursor ? { from: 'cursor', cursor } : { from: 'now' },
          }
          for await (const { id, type, data } of hub.stream(request, { signal })) {
            if (id !== null) yield tracked(id, { type, data: JSON.parse(data) as unknown })
          }
        }),
    })
    return getRequestListener((req) => fetchRequestHandler({ endpoint: '/trpc', req, router }))
  }

  const input = encodeURIComponent(JSON.stringify({ id: '42' }))
  recipe(`/trpc/order?input=${input}`, serve, (data) => {
    const { type, data: value } = (data === '' ? {} : JSON.parse(data)) as { type?: string; data?: unknown }
    return type === 'message' ? value : undefined
  })
})

describe('an @Sse of NestJS', () => {
  function events(hub: Hub, order: string, cursor?: string): Observable<MessageEvent> {
    return new Observable((subscriber) => {
      const abort = new AbortController()
      const request: SubscribeRequest = {
        subscription: createSubscription([`orders/${order}`]),
        start: cursor ? { from: 'cursor', cursor } : { from: 'now' },
      }
      from(hub.stream(request, { signal: abort.signal }))
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
