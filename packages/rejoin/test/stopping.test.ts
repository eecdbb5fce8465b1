import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type ServeOptions, type Serving, serve } from '../src/serve.ts'
import { certificateFiles, hasOpenssl } from './support/certificate.ts'
import { open, send, until } from './support/http.ts'
import { keptPublishers, publishText } from './support/kept-publishers.ts'

test('behind a proxy, a hub that stops says so first, and serves everybody until the proxy has asked', async () => {
  const { server, pass } = await behindProxy()
  const reader = await open(server.url, '/events/demo')
  await until(reader, 'event: hello')
  const stopped = server.close()
  expect((await send(server.url, '/readyz')).status).toBe(503)
  await pass(2400)
  const late = await open(server.url, '/events/demo')
  await until(late, 'event: hello')
  expect((await send(server.url, '/publish/demo', { method: 'POST', body: 'still here' })).status).toBe(201)
  for (const stream of [reader, late]) await until(stream, 'data: still here')
  await pass(200)
  for (const stream of [reader, late]) await until(stream, '"reason":"drain"')
  await pass(5000)
  await stopped
})

test('behind a proxy, a publish on a kept connection is answered after the hub has stopped listening, and ends the connection', async () => {
  const { server, pass } = await behindProxy()
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  expect(await publishBy(agent, server)).toMatchObject({ status: 201, connection: 'keep-alive' })
  const stopped = server.close()
  await pass(2500)
  await expect.poll(() => connects(server)).toBe(false)
  expect(await publishBy(agent, server)).toMatchObject({ status: 201, connection: 'close' })
  await pass(1000)
  await stopped
})

test('behind a proxy, publishes that a busy machine has not let the hub read are answered when its time is up', async () => {
  const { server, pass } = await behindProxy()
  const sockets = await Promise.all([connected(server), connected(server)])
  const [used, fresh] = sockets as [Socket, Socket]
  used.write(publishText)
  expect(await answerOn(used)).toContain('HTTP/1.1 201')
  const stopped = server.close()
  await pass(2500)
  await expect.poll(() => connects(server)).toBe(false)
  const answers = [used, fresh].map(answerOn)
  // The bytes are with the system when the time is up, and the hub has had no turn to read them.
  for (const socket of [used, fresh]) socket.write(publishText)
  vi.advanceTimersByTime(1000)
  for (const answer of await Promise.all(answers)) expect(answer).toContain('HTTP/1.1 201')
  await stopped
})

test('behind a proxy, publishes that arrive while a stopping hub is stalled are answered, also when its time passes meanwhile', async () => {
  const answers = await answersInStalls({ trustProxy: true })
  expect(new Set(answers)).toEqual(new Set(['HTTP/1.1 201']))
})

test.skipIf(!hasOpenssl)(
  'over TLS too, publishes that arrive while a stopping hub is stalled are answered',
  async () => {
    const answers = await answersInStalls({ trustProxy: true, tls: certificateFiles('stalled.example') })
    expect(new Set(answers)).toEqual(new Set(['HTTP/1.1 201']))
  },
)

test('behind a proxy, a hub that stops closes connections on which nothing arrives', async () => {
  const { server, pass } = await behindProxy()
  const [used, fresh] = (await Promise.all([connected(server), connected(server)])) as [Socket, Socket]
  used.write(publishText)
  expect(await answerOn(used)).toContain('HTTP/1.1 201')
  const closed = [used, fresh].map((socket) => once(socket.resume(), 'close'))
  const stopped = server.close()
  await pass(2500)
  await expect.poll(() => connects(server)).toBe(false)
  vi.advanceTimersByTime(1000)
  // The two seconds for connections in use are not needed: they would pass only with `pass`.
  await Promise.all([stopped, ...closed])
})

test('without a proxy, a hub that has no readers stops at once', async () => {
  const { server } = await behindProxy({ trustProxy: false })
  await server.close()
})

test('behind a proxy, idle connections are left to the proxy to close: a request on one that the hub closes would fail', async () => {
  const { server } = await behindProxy()
  const { headers } = await send(server.url, '/healthz', { headers: { connection: 'keep-alive' } })
  // Longer than the 600 s of Google's load balancer. No other proxy that we know of keeps them for longer.
  expect(headers['keep-alive']).toBe('timeout=620')
  const direct = await behindProxy({ trustProxy: false })
  const answer = await send(direct.server.url, '/healthz', { headers: { connection: 'keep-alive' } })
  expect(answer.headers['keep-alive']).toBe('timeout=5')
})

/** A hub whose timers run when the test says so. */
async function behindProxy(options: ServeOptions = { trustProxy: true }) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const server = await serve({ port: 0, ...options })
  onTestFinished(() => server.close({ withinMs: 0 }))
  return { server, pass: (ms: number) => vi.advanceTimersByTimeAsync(ms) }
}

async function answersInStalls(options: ServeOptions): Promise<string[]> {
  const { server, pass } = await behindProxy(options)
  const publishers = await keptPublishers(server)
  const stopped = server.close()
  await pass(2500)
  await expect.poll(() => connects(server)).toBe(false)
  const answers = publishers.publishInStalls()
  vi.advanceTimersByTime(1000)
  await answers
  await stopped
  return answers
}

async function publishBy(agent: Agent, { url }: Serving) {
  const asked = request(`${url}/publish/demo`, { method: 'POST', agent }).end('kept')
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  await once(response.resume(), 'end')
  return { status: response.statusCode, connection: response.headers.connection }
}

async function connected({ url }: Serving): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** What comes next; an end or a reset is an empty text. */
function answerOn(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket
      .once('data', (bytes) => resolve(bytes.toString()))
      .once('close', () => resolve(''))
      .once('error', () => resolve(''))
  })
}

async function connects({ url }: Serving): Promise<boolean> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const isOpen = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  })
  socket.destroy()
  return isOpen
}
