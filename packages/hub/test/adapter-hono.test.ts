import { getRequestListener } from '@hono/node-server'
import { createHub } from '@rejoin/hub'
import { honoHandler, subscribe } from '@rejoin/hub/hono'
import { memoryLog } from '@rejoin/hub/memory'
import { type Context, Hono } from 'hono'
import { compress } from 'hono/compress'
import { cors } from 'hono/cors'
import { describe, expect, test } from 'vitest'
import { adapterContract, bearer } from './adapter-contract.ts'
import { serveListener } from './http-server.ts'
import { subscribeContract } from './subscribe-contract.ts'

describe.each([
  ['Hono on @hono/node-server', (app: Hono) => getRequestListener(app.fetch)],
  // Nothing but the standard, as on a platform without Node's request and response.
  ['Hono on fetch alone', (app: Hono) => getRequestListener((request) => app.fetch(request))],
])('%s', (_name, listenerOf) => {
  adapterContract((hub, { prefix, compressed, authorize }) => {
    const app = new Hono()
    if (compressed) app.use(compress({ threshold: 0 }))
    const handler = honoHandler(hub, {
      basePath: prefix,
      ...(authorize ? { authorize: (c: Context) => authorize(bearer(c.req.header('Authorization'))) } : {}),
    })
    app.use(`${prefix}/*`, handler)
    return listenerOf(app)
  })

  subscribeContract((hub, { wildcardAt, fixedAt, channels }) => {
    const app = new Hono()
    app.get(`${wildcardAt}/:channel{.+}`, subscribe(hub))
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
})
