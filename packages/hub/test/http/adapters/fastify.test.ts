import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import compress from '@fastify/compress'
import { createHub } from '@rejoin/hub'
import { fastifyPlugin, subscribe } from '@rejoin/hub/fastify'
import { memoryLog } from '@rejoin/hub/memory'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { describe, expect, test } from 'vitest'
import { openStream, serveListener } from '../../support/http-server.ts'
import { publish } from '../../support/publishing.ts'
import { adapterContract, bearer } from './contract.ts'
import { subscribeContract } from './subscribe-contract.ts'

async function listenerOf(app: FastifyInstance): Promise<RequestListener> {
  await app.ready()
  return (request, response) => app.routing(request, response)
}

describe('Fastify', () => {
  adapterContract(
    async (hub, { prefix, compressed, authorize, before, onError }) => {
      const app = fastify()
      if (compressed) await app.register(compress, { threshold: 0 })
      if (before) app.addHook('preHandler', async (_request, reply) => before(reply.raw))
      if (onError) {
        app.setErrorHandler((error, _request, reply) => {
          onError(error)
          return reply.code(503).send()
        })
      }
      const options = authorize
        ? { authorize: ({ raw }: FastifyRequest) => authorize(bearer(raw.headers.authorization)) }
        : {}
      await app.register(fastifyPlugin(hub, options), { prefix })
      return listenerOf(app)
    },
    { hasErrorHandler: true, unguarded: ['writeHead'] },
  )

  subscribeContract((hub, { wildcardAt, moreAt, fixedAt, channels }) => {
    const app = fastify()
    app.get(`${wildcardAt}/*`, subscribe(hub))
    app.get(`${moreAt}/*`, subscribe(hub, { moreChannels: true }))
    app.get(fixedAt, subscribe(hub, { channels }))
    return listenerOf(app)
  })

  test('leaves every other path, and its body, to the application', async () => {
    const hub = await createHub({ log: memoryLog() })
    const app = fastify()
    await app.register(fastifyPlugin(hub))
    app.post('/mine', async ({ body }) => ({ got: body }))
    const { url } = await serveListener(hub, await listenerOf(app))
    const body = JSON.stringify({ n: 1 })
    const answer = await fetch(url('/mine'), { method: 'POST', body, headers: { 'Content-Type': 'application/json' } })
    expect(await answer.json()).toEqual({ got: { n: 1 } })
  })

  test('sends the headers that hooks have set, as those of CORS', async () => {
    const hub = await createHub({ log: memoryLog() })
    const app = fastify()
    app.addHook('onRequest', async (_request, reply) => {
      reply.header('Access-Control-Allow-Origin', '*')
    })
    await app.register(fastifyPlugin(hub))
    const { open } = await serveListener(hub, await listenerOf(app))
    expect((await open('/events/a')).headers['access-control-allow-origin']).toBe('*')
  })

  test('sends what hooks add in onSend, as cookies are, with streams and rejections', async () => {
    const hub = await createHub({ log: memoryLog() })
    const app = fastify()
    app.addHook('onSend', async (_request, reply) => {
      reply.header('Set-Cookie', ['a=1', 'b=2'])
    })
    await app.register(fastifyPlugin(hub))
    app.get('/mine/*', subscribe(hub))
    const { open } = await serveListener(hub, await listenerOf(app))
    for (const path of ['/events/a', '/mine/a', '/events/a//b']) {
      expect((await open(path)).headers['set-cookie']).toEqual(['a=1', 'b=2'])
    }
    const { url } = await serveListener(hub, await listenerOf(app))
    for (const data of ['short', 'long'.repeat(2000)]) {
      const published = await fetch(url('/publish/a'), { method: 'POST', body: data })
      expect([published.status, published.headers.getSetCookie()]).toEqual([201, ['a=1', 'b=2']])
      const polled = await fetch(url('/poll/a?replay=1'))
      expect(polled.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
      expect(JSON.stringify(await polled.json())).toContain(data)
    }
  })

  test('app.close() ends streams and resolves, with a hub that closes before or after the server', async () => {
    for (const hook of ['preClose', 'onClose'] as const) {
      const hub = await createHub({ log: memoryLog() })
      const app = fastify()
      await app.register(fastifyPlugin(hub))
      app.get('/mine/*', subscribe(hub))
      app.addHook(hook, () => hub.close())
      await app.listen({ port: 0, host: '127.0.0.1' })
      const { port } = app.server.address() as AddressInfo
      const streams = await Promise.all(['/events/a', '/mine/b'].map((path) => openStream(port, path)))
      for (const stream of streams) await stream.waitFor((events) => events.length === 1)
      await app.close()
      for (const stream of streams) {
        await stream.ended
        expect(stream.events.at(-1)).toMatchObject({ type: 'close', data: '{"reason":"drain"}' })
      }
    }
  })

  test('a hook that rejects a request keeps it from the hub', async () => {
    const hub = await createHub({ log: memoryLog() })
    const app = fastify()
    app.addHook('onRequest', async (_request, reply) => reply.code(418).send('no'))
    await app.register(fastifyPlugin(hub))
    const { url } = await serveListener(hub, await listenerOf(app))
    expect((await fetch(url('/events/a'))).status).toBe(418)
  })

  test('believes a proxy when the application does, and only then', async () => {
    for (const trustProxy of [true, false]) {
      const hub = await createHub({ log: memoryLog() })
      const app = fastify({ trustProxy })
      await app.register(fastifyPlugin(hub))
      const { open } = await serveListener(hub, await listenerOf(app))
      const connected = new Promise((resolve) => void hub.on('connect', resolve))
      const [id] = await publish(hub, 'a', 1)
      await open('/events/a', { 'X-Forwarded-For': '192.0.2.7', 'X-Forwarded-Last-Event-Id': id as string })
      expect(await connected).toMatchObject({
        ip: trustProxy ? '192.0.2.7' : '127.0.0.1',
        requested: trustProxy ? id : null,
      })
    }
  })

  test('a channel may be as long as the protocol lets it (§5.2)', async () => {
    const hub = await createHub({ log: memoryLog() })
    const app = fastify()
    await app.register(fastifyPlugin(hub))
    const { open } = await serveListener(hub, await listenerOf(app))
    expect((await open(`/events/${'a'.repeat(256)}`)).status).toBe(200)
  })
})
