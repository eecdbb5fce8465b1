import { createRequire } from 'node:module'
import { createHub, type Hub } from '@rejoin/hub'
import { expressHandler, subscribe } from '@rejoin/hub/express'
import { memoryLog } from '@rejoin/hub/memory'
import compression from 'compression'
import express5, { type Express, type NextFunction, type Request, type Response } from 'express'
import { describe, expect, test } from 'vitest'
import { serveListener, type TestServer } from '../../support/http-server.ts'
import { publish } from '../../support/publishing.ts'
import { adapterContract, bearer, type Setup } from './contract.ts'
import { subscribeContract } from './subscribe-contract.ts'

type Framework = typeof express5

// The types of Express 5, as far as they are used here, are those of 4 as well.
const express4: Framework = createRequire(import.meta.url)('express-4')

describe.each<[name: string, express: Framework, wildcard: string]>([
  ['Express 5', express5, '*channel'],
  ['Express 4', express4, '*'],
])('%s', (_name, express, wildcard) => {
  adapterContract(
    (hub, { prefix, compressed, authorize, before, onError }: Setup) => {
      const app = express()
      if (compressed) app.use(compression({ threshold: 0 }))
      if (before) {
        app.use((_request, response, next) => {
          before(response)
          next()
        })
      }
      const handler = expressHandler(hub, {
        ...(authorize ? { authorize: ({ headers }) => authorize(bearer(headers.authorization)) } : {}),
      })
      const router = express.Router()
      router.use(handler)
      if (prefix === '') app.use(handler)
      else app.use(prefix, router)
      if (onError) {
        app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) => {
          onError(error)
          response.status(503).end()
        })
      }
      return app
    },
    { hasErrorHandler: true },
  )

  subscribeContract((hub, { wildcardAt, moreAt, fixedAt, channels }) => {
    const app = express()
    app.get(`${wildcardAt}/${wildcard}`, subscribe(hub))
    app.get(`${moreAt}/${wildcard}`, subscribe(hub, { moreChannels: true }))
    app.get(fixedAt, subscribe(hub, { channels }))
    return app
  })

  async function serve(build: (app: Express, hub: Hub) => void): Promise<TestServer> {
    const hub = await createHub({ log: memoryLog() })
    const app = express()
    build(app, hub)
    return serveListener(hub, app)
  }

  test('leaves every other path to the application', async () => {
    const { url } = await serve((app, hub) => {
      app.use(expressHandler(hub))
      app.get('/mine', (_request, response) => void response.send('mine'))
    })
    expect(await (await fetch(url('/mine'))).text()).toBe('mine')
  })

  test('authorize is given the request with what the application has put on it', async () => {
    const { open } = await serve((app, hub) => {
      app.use((request, _response, next) => {
        Object.assign(request, { user: 'ada' })
        next()
      })
      const authorize = (request: Request & { user?: string }) => ({
        subject: request.user ?? '',
        subscribe: [`users/${request.user}/*`],
      })
      app.get(`/events/${wildcard}`, subscribe(hub, { authorize }))
    })
    expect((await open('/events/users/ada/orders')).status).toBe(200)
    expect((await open('/events/users/bob/orders')).status).toBe(403)
  })

  test('believes a proxy when the application does, and only then', async () => {
    for (const trust of [true, false]) {
      const { hub, open } = await serve((app, hub) => {
        app.set('trust proxy', trust)
        app.use(expressHandler(hub))
      })
      const connected = new Promise((resolve) => void hub.on('connect', resolve))
      const [id] = await publish(hub, 'a', 1)
      await open('/events/a', { 'X-Forwarded-For': '192.0.2.7', 'X-Forwarded-Last-Event-Id': id as string })
      expect(await connected).toMatchObject({
        ip: trust ? '192.0.2.7' : '127.0.0.1',
        requested: trust ? id : null,
      })
    }
  })

  test('takes the body of a publish from a parser that keeps it, and says what to do about one that does not', async () => {
    const { hub, url } = await serve((app, hub) => {
      app.use(express.text({ type: 'text/*' }), express.raw({ type: 'application/octet-stream' }), express.json())
      app.use(expressHandler(hub))
    })
    const published: string[] = []
    const post = (type: string, body: string) =>
      fetch(url('/publish/a'), { method: 'POST', body, headers: { 'Content-Type': type } })
    for (const type of ['text/plain', 'application/octet-stream', 'application/x-unknown']) {
      expect((await post(type, type)).status).toBe(201)
    }
    for await (const { type, data } of hub.stream('a', { from: 'earliest' })) {
      if (type === 'message') published.push(data)
      if (published.length === 3) break
    }
    expect(published).toEqual(['text/plain', 'application/octet-stream', 'application/x-unknown'])
    const rejected = await post('application/json', '{}')
    expect([rejected.status, (await rejected.json()).error.message]).toEqual([
      400,
      expect.stringContaining('Mount the hub before the body parser'),
    ])
  })
})

test('the example of the guide: an application with a stream and a route that publishes', async () => {
  const hub = await createHub({ log: memoryLog() })
  const app = express5()
  app.get(
    '/events/*channel',
    subscribe(hub, { authorize: (req) => ({ subject: req.ip ?? 'somebody', subscribe: ['orders/*'] }) }),
  )
  app.post('/orders/:id/ship', async (req, res) => {
    const event = await hub.publish(`orders/${req.params.id}`, { type: 'shipped', data: { at: 1 } })
    res.json({ id: event.id })
  })
  const { url, open } = await serveListener(hub, app)
  const stream = await open('/events/orders/42')
  await stream.waitFor((events) => events.length === 1)
  const { id } = await (await fetch(url('/orders/42/ship'), { method: 'POST' })).json()
  await stream.waitFor((events) => events.length === 2)
  expect(stream.events[1]).toEqual({ id, type: 'shipped', data: '{"at":1}' })
})
