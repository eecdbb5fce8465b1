import { createHub } from '@rejoin/hub'
import { expressHandler, subscribe as subscribeInExpress } from '@rejoin/hub/express'
import { fastifyPlugin, subscribe as subscribeInFastify } from '@rejoin/hub/fastify'
import { honoHandler, subscribe as subscribeInHono } from '@rejoin/hub/hono'
import { memoryLog } from '@rejoin/hub/memory'
import express, { type Request as ExpressRequest } from 'express'
import fastify, { type FastifyRequest } from 'fastify'
import { type Context, Hono } from 'hono'
import { expect, expectTypeOf, test } from 'vitest'

// What counts is that this file compiles: the functions of the options get what their framework gives a handler, without a
// word about its type.
test('functions in the options get the request of their framework', async () => {
  const hub = await createHub({ log: memoryLog() })

  const inExpress = express()
  inExpress.get(
    '/me/events',
    subscribeInExpress(hub, {
      channels(req) {
        expectTypeOf(req.get('x')).toEqualTypeOf<string | undefined>()
        return [`users/${req.cookies.user}`, String(req.query.more)]
      },
      authorize: (req) => ({ subject: req.get('x-user') ?? null, subscribe: ['*'] }),
    }),
  )
  inExpress.use(expressHandler(hub, { authorize: (req) => ({ subject: req.hostname, subscribe: ['*'] }) }))
  inExpress.get('/typed', subscribeInExpress(hub, { channels: (req: ExpressRequest) => req.path }))

  const inFastify = fastify()
  inFastify.get(
    '/me/events',
    subscribeInFastify(hub, {
      channels: (req) => [`users/${req.hostname}`],
      authorize: (req) => ({ subject: req.headers['x-user'] as string, subscribe: ['*'] }),
    }),
  )
  inFastify.register(fastifyPlugin(hub, { authorize: (req) => ({ subject: req.hostname, subscribe: ['*'] }) }))
  inFastify.get('/typed', subscribeInFastify(hub, { channels: (req: FastifyRequest) => req.url }))

  const inHono = new Hono<{ Variables: { user: string } }>()
  inHono.get(
    '/me/events',
    subscribeInHono(hub, {
      channels: (c) => [`users/${c.get('user')}`, c.req.query('more') ?? 'news'],
      authorize: (c) => ({ subject: c.get('user'), subscribe: ['*'] }),
    }),
  )
  inHono.use(honoHandler(hub, { authorize: (c) => ({ subject: c.get('user'), subscribe: ['*'] }) }))
  inHono.get('/typed', subscribeInHono(hub, { channels: (c: Context) => c.req.path }))

  expect([inExpress, inFastify, inHono]).toHaveLength(3)
  await hub.close()
})
