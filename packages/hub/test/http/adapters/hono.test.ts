import type { ServerResponse } from 'node:http'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { createHub, type Grant } from '@rejoin/hub'
import { honoHandler, subscribe } from '@rejoin/hub/hono'
import { memoryLog } from '@rejoin/hub/memory'
import { type Context, Hono } from 'hono'
import { compress } from 'hono/compress'
import { cors } from 'hono/cors'
import { describe, expect, test } from 'vitest'
import { serveListener } from '../../support/http-server.ts'
import { publish } from '../../support/publishing.ts'
import { adapterContract, bearer } from './contract.ts'
import { subscribeContract } from './subscribe-contract.ts'

type App = { fetch(request: Request, env?: object): Response | Promise<Response> }

describe.each([
  ['Hono on @hono/node-server', (app: App) => getRequestListener(app.fetch), false],
  // Nothing but the standard, as on a platform without Node's request and response.
  ['Hono on fetch alone', (app: App) => getRequestListener((request) => app.fetch(request)), true],
] as const)('%s', (_name, listenerOf, isApart) => {
  adapterContract(
    (hub, { prefix, compressed, authorize, before, onError }) => {
      const app = new Hono<{ Bindings: Partial<HttpBindings> }>()
      if (compressed) app.use(compress({ threshold: 0 }))
      if (before) {
        app.use(async ({ env }, next) => {
          if (env?.outgoing) before(env.outgoing as ServerResponse)
          await next()
        })
      }
      if (onError) {
        app.onError((error, c) => {
          onError(error)
          return c.body(null, 503)
        })
      }
      const handler = honoHandler(hub, {
        basePath: prefix,
        ...(authorize ? { authorize: (c: Context) => authorize(bearer(c.req.header('Authorization'))) } : {}),
      })
      app.use(`${prefix}/*`, handler)
      return listenerOf(app)
    },
    { hasErrorHandler: true, isApart, unguarded: ['writeHead', 'end'] },
  )

  subscribeContract((hub, { wildcardAt, moreAt, fixedAt, channels }) => {
    const app = new Hono()
    app.get(`${wildcardAt}/:channel{.+}`, subscribe(hub))
    app.get(`${moreAt}/:channel{.+}`, subscribe(hub, { moreChannels: true }))
    app.get(fixedAt, subscribe(hub, { channels }))
    return listenerOf(app)
  })

  test('leaves every other path to the application', async () => {
    const hub = await createHub({ log: memoryLog() })
    const app = new Hono()
    app.use(honoHandler(hub))
    app.get('/mine', (c) => c.text('mine'))
    const { url } = await serveListener(hub, listenerOf(app))
    expect(await (await fetch(url('/mine'))).text()).toBe('mine')
  })

  test('sends the headers that middleware has set, as those of CORS', async () => {
    const hub = await createHub({ log: memoryLog() })
    const app = new Hono()
    app.use(cors())
    app.use(honoHandler(hub))
    const { open } = await serveListener(hub, listenerOf(app))
    expect((await open('/events/a')).headers['access-control-allow-origin']).toBe('*')
  })

  test('sends every cookie that middleware sets, before the hub and after it', async () => {
    const hub = await createHub({ log: memoryLog() })
    const app = new Hono()
    app.use(async (c, next) => {
      c.header('Set-Cookie', 'a=1', { append: true })
      c.header('Set-Cookie', 'b=2', { append: true })
      await next()
      c.header('Set-Cookie', 'c=3', { append: true })
      c.header('X-After', 'yes')
    })
    app.use(honoHandler(hub))
    const { open } = await serveListener(hub, listenerOf(app))
    const stream = await open('/events/a')
    expect(stream.headers).toMatchObject({ 'set-cookie': ['a=1', 'b=2', 'c=3'], 'x-after': 'yes' })
    await stream.waitFor((events) => events[0]?.type === 'hello')
  })

  test('a stream whose response middleware wraps anew is the same stream', async () => {
    const hub = await createHub({ log: memoryLog() })
    const app = new Hono()
    app.use(async (c, next) => {
      await next()
      c.res = new Response(c.res.body, {
        status: c.res.status,
        headers: { ...Object.fromEntries(c.res.headers), 'X-W': '1' },
      })
    })
    app.use(honoHandler(hub))
    const { open } = await serveListener(hub, listenerOf(app))
    const stream = await open('/events/a')
    expect(stream.headers).toMatchObject({ 'x-w': '1', 'content-type': 'text/event-stream; charset=utf-8' })
    await publish(hub, 'a', 1)
    await stream.waitFor((events) => events.at(-1)?.data === '1')
    await hub.close()
    await stream.ended
    expect(stream.events.at(-1)?.type).toBe('close')
  })

  test('a stream whose body middleware changes is changed', async () => {
    const hub = await createHub({ log: memoryLog() })
    const app = new Hono()
    app.use(async (c, next) => {
      await next()
      const upper = new TransformStream<Uint8Array, Uint8Array>({
        transform: (part, controller) => controller.enqueue(Buffer.from(Buffer.from(part).toString().toUpperCase())),
      })
      c.res = new Response(c.res.body?.pipeThrough(upper) ?? null, c.res)
    })
    app.use(honoHandler(hub))
    const { open } = await serveListener(hub, listenerOf(app))
    const stream = await open('/events/a')
    await stream.waitFor((_events, text) => text.includes('EVENT: HELLO'))
  })

  test('streams that a timeout has answered instead take no room from others', async () => {
    const hub = await createHub({ log: memoryLog(), limits: { maxConnections: 2 } })
    const app = new Hono()
    const rights: (() => void)[] = []
    let asked = new Promise<void>(() => undefined)
    app.use('/slow/*', async (c, next) => {
      const isLate = await Promise.race([next().then(() => false), asked.then(() => true)])
      if (isLate) c.res = c.text('late', 504)
    })
    const authorize = () =>
      new Promise<Grant>((resolve) => void rights.push(() => resolve({ subject: null, subscribe: ['*'] })))
    app.use('/slow/*', honoHandler(hub, { basePath: '/slow', authorize }))
    app.use(honoHandler(hub))
    const { url, open } = await serveListener(hub, listenerOf(app))
    for (let n = 0; n < 5; n += 1) {
      let answer = () => {}
      asked = new Promise((resolve) => {
        answer = resolve
      })
      const late = fetch(url('/slow/events/a'))
      await expect.poll(() => rights.length).toBe(n + 1)
      answer()
      expect((await late).status).toBe(504)
      rights[n]?.()
    }
    const stream = await open('/events/a')
    await stream.waitFor((events) => events[0]?.type === 'hello')
  })
})

test.each([
  ['Bun', { requestIP: () => ({ address: '192.0.2.7' }) }],
  ['Bun with more in its environment', { server: { requestIP: () => ({ address: '192.0.2.7' }) } }],
  ['Deno', { remoteAddr: { transport: 'tcp', hostname: '192.0.2.7', port: 1 } }],
])('limits per address hold on %s', async (_name, env) => {
  const hub = await createHub({ log: memoryLog(), limits: { maxPerIp: 1 } })
  const app = new Hono()
  app.use(honoHandler(hub))
  const first = await app.fetch(new Request('http://x/events/a'), env)
  await first.body?.getReader().read()
  expect([...hub.admin.connections()].map(({ ip }) => ip)).toEqual(['192.0.2.7'])
  const second = await app.fetch(new Request('http://x/events/a'), env)
  expect(await second.text()).toContain('"reason":"overloaded"')
  await hub.close()
})
