import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  createSecureServer,
  createServer,
} from 'node:http2'
import { request as httpsRequest } from 'node:https'
import { type AddressInfo, connect as connectSocket, type Server, type Socket } from 'node:net'
import { createHub, type Hub, type HubOptions } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { type NodeHandlerOptions, nodeHandler } from '@rejoin/hub/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { makeCertificate } from '../../../../../test/support/certificate.ts'
import { preface, resetRequests } from '../../../../../test/support/http2-frames.ts'
import { publish } from '../../support/publishing.ts'
import { parse, type Received } from '../../support/recorder.ts'

const certificate = makeCertificate()

describe('HTTP/2', () => {
  test('a stream is the same, with none of the frames of HTTP/1 in it', async () => {
    const { hub, session } = await start()
    const stream = open(session(), '/events/a')
    await stream.waitFor((events) => events.length === 1)
    await publish(hub, 'a', 1)
    await stream.waitFor((events) => events.length === 2)
    expect(stream.text()).toMatch(/^retry: \d+\nid: \w+\nevent: hello\ndata: .*\n\nid: \w+\ndata: 1\n\n$/)
  })

  test('a connection that drops takes all its streams with it, and each goes on where it was', async () => {
    const { hub, session, cutAll } = await start()
    const channels = Array.from({ length: 20 }, (_, n) => `channel/${n}`)
    const first = session()
    const before = channels.map((channel) => open(first, `/events/${channel}`))
    await Promise.all(before.map((stream) => stream.waitFor((events) => events.length === 1)))
    for (const channel of channels) await publish(hub, channel, 1, 2)
    await Promise.all(before.map((stream) => stream.waitFor((events) => events.length === 3)))
    const gone = closes(hub, channels.length)
    cutAll()
    await gone
    for (const channel of channels) await publish(hub, channel, 3, 4)
    const second = session()
    const after = channels.map((channel, n) =>
      open(second, `/events/${channel}`, { 'last-event-id': before[n]?.events().at(-1)?.id as string }),
    )
    await Promise.all(after.map((stream) => stream.waitFor((events) => events.length === 3)))
    const data = after.map((stream) =>
      stream
        .events()
        .slice(1)
        .map((event) => event.data),
    )
    expect(data).toEqual(channels.map(() => ['3', '4']))
  })

  test('streams and a waiting poll end with the server that carries them, and the server with its connection', async () => {
    const { hub, session, server } = await start()
    const [id] = await publish(hub, 'a', 1)
    const shared = session()
    const streams = ['/events/a', '/events/b'].map((path) => open(shared, path))
    const poll = open(shared, `/poll/a?cursor=${id}&waitMs=60000`)
    const answered = new Promise<unknown>((resolve) => poll.stream.once('response', (head) => resolve(head[':status'])))
    await Promise.all(streams.map((stream) => stream.waitFor((events) => events.length === 1)))
    await expect.poll(() => [...hub.admin.connections()].length).toBe(3)
    const closed = new Promise((resolve) => server.close(resolve))
    await Promise.all([...streams, poll].map((stream) => stream.closed))
    for (const stream of streams) {
      expect(stream.events().at(-1)).toMatchObject({ type: 'close', data: '{"reason":"drain"}' })
    }
    expect(await answered).toBe(503)
    expect([...hub.admin.connections()]).toEqual([])
    shared.close()
    await closed
  })

  test('a publish that breaks off in the middle of its body publishes nothing', async () => {
    const { hub, session } = await start()
    const shared = session()
    const broken = shared.request({ ':path': '/publish/a', ':method': 'POST' })
    broken.on('error', () => undefined)
    broken.write('half of')
    await new Promise((resolve) => shared.ping(resolve))
    broken.close(constants.NGHTTP2_CANCEL)
    await new Promise((resolve) => broken.once('close', resolve))
    await new Promise((resolve) => shared.ping(resolve))
    await publish(hub, 'a', 1)
    expect(hub.admin.totals.events).toBe(1)
  })

  test('requests that one packet opens and resets are never served, and close their connection', async () => {
    let asked = 0
    const authorize = () => {
      asked += 1
      return null
    }
    const { hub, port } = await start({}, { authorize })
    const socket = connectSocket(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.write(preface)
    await once(socket, 'data')
    socket.write(resetRequests('/events/a', 200))
    await once(socket.resume(), 'close')
    expect(asked).toBe(0)
    expect([...hub.admin.connections()]).toEqual([])
  })

  test('a stream whose request goes on with a body byte by byte is cut, and its neighbours stay', async () => {
    const { hub, session } = await start()
    const shared = session()
    const neighbour = open(shared, '/events/a')
    await neighbour.waitFor((events) => events.length === 1)
    const request = shared.request({ ':path': '/events/a', ':method': 'GET' }, { endStream: false })
    request.on('error', () => undefined)
    const closed = new Promise((resolve) => request.resume().once('close', resolve))
    const isOver = () => request.destroyed || request.closed
    for (let sent = 0; sent < 10_000 && !isOver(); sent += 1)
      await Promise.race([closed, new Promise((resolve) => request.write('x', resolve))])
    await closed
    expect(request.rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    await publish(hub, 'a', 1)
    await neighbour.waitFor((events) => events.length === 2)
  })

  test('a reader that resets its stream is noticed, and its neighbours stay', async () => {
    const { hub, session } = await start()
    const shared = session()
    const [leaving, staying] = [open(shared, '/events/a'), open(shared, '/events/b')]
    await leaving.waitFor((events) => events.length === 1)
    await staying.waitFor((events) => events.length === 1)
    const closed = new Promise((resolve) => void hub.on('close', resolve))
    leaving.stream.close()
    expect(await closed).toMatchObject({ reason: 'disconnected', channels: ['a'] })
    await publish(hub, 'b', 1)
    await staying.waitFor((events) => events.length === 2)
  })

  test('a stream that nobody reads is given up, with no more waiting than its budget and a turn; others stay', async () => {
    const { hub, session } = await start({ stallTimeoutMs: 200 })
    const stalled = new Promise<{ pending: number }>((resolve) => void hub.on('stall', resolve))
    const shared = session()
    const [idle, reading] = [open(shared, '/events/large'), open(shared, '/events/small')]
    await idle.waitFor((events) => events.length === 1)
    await reading.waitFor((events) => events.length === 1)
    idle.stream.pause()
    const filler = 'x'.repeat(32 * 1024)
    for (let n = 0; n < 40; n += 1) {
      await hub.publish('large', { data: filler })
      await new Promise(setImmediate)
    }
    expect((await stalled).pending).toBeLessThan(192 * 1024)
    idle.stream.resume()
    await idle.closed
    await publish(hub, 'small', 1)
    await reading.waitFor((events) => events.length === 2)
  })

  test('a stream that stops reading catches up from the log, and misses nothing', async () => {
    const { hub, session } = await start()
    const stream = open(session(), '/events/a')
    await stream.waitFor((events) => events.length === 1)
    stream.stream.pause()
    const numbers = Array.from({ length: 100 }, (_, n) => n)
    const filler = 'x'.repeat(8 * 1024)
    for (const n of numbers) {
      await hub.publish('a', { data: { n, filler } })
      await new Promise(setImmediate)
    }
    stream.stream.resume()
    await stream.waitFor((events) => events.length === 101)
    expect(
      stream
        .events()
        .slice(1)
        .map(({ data }) => JSON.parse(data).n),
    ).toEqual(numbers)
  })

  test('publishes and polls', async () => {
    const { session } = await start()
    const shared = session()
    const published = open(shared, '/publish/a', { ':method': 'POST' }, 'one')
    await published.closed
    expect(JSON.parse(published.text())).toEqual({ id: expect.any(String), durability: 'memory' })
    const polled = open(shared, '/poll/a?replay=1')
    await polled.closed
    expect(JSON.parse(polled.text()).events).toMatchObject([{ type: 'hello' }, { type: 'message', data: 'one' }])
  })

  test('a hub that closes ends every stream in order', async () => {
    const { hub, session } = await start()
    const stream = open(session(), '/events/a')
    await stream.waitFor((events) => events.length === 1)
    await hub.close()
    await stream.closed
    expect(stream.events().at(-1)).toMatchObject({ type: 'close', data: '{"reason":"drain"}' })
  })

  test.skipIf(!certificate)(
    'a server with TLS that takes both serves those who speak HTTP/1 too (needs openssl)',
    async () => {
      const hub = await createHub({ log: memoryLog() })
      const server = createSecureServer({ ...certificate, allowHTTP1: true }, nodeHandler(hub))
      const { port } = await listen(hub, server)
      const version = await new Promise<string>((resolve, reject) => {
        const request = httpsRequest(
          { port, host: '127.0.0.1', path: '/events/a', rejectUnauthorized: false },
          (answer) => {
            answer.once('data', () => {
              resolve(answer.httpVersion)
              request.destroy()
            })
          },
        )
        request.on('error', reject).end()
      })
      expect(version).toBe('1.1')
      const session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
      onTestFinished(() => session.destroy())
      await open(session, '/events/a').waitFor((events) => events[0]?.type === 'hello')
    },
  )
})

interface Started {
  readonly hub: Hub
  readonly port: number
  session(): ClientHttp2Session
  /** Cuts every connection, as a network that fails does. */
  readonly server: Server
  cutAll(): void
}

async function start(options: Partial<HubOptions> = {}, handler: NodeHandlerOptions = {}): Promise<Started> {
  const hub = await createHub({ log: memoryLog(), ...options })
  const server = createServer(nodeHandler(hub, handler))
  const { port, sockets } = await listen(hub, server)
  return {
    hub,
    port,
    server,
    session() {
      const session = connect(`http://127.0.0.1:${port}`)
      session.on('error', () => session.destroy())
      onTestFinished(() => session.destroy())
      return session
    },
    cutAll() {
      for (const socket of sockets) socket.resetAndDestroy()
    },
  }
}

async function listen(hub: Hub, server: Server): Promise<{ port: number; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await hub.close()
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return { port: (server.address() as AddressInfo).port, sockets }
}

interface Http2Reader {
  readonly stream: ClientHttp2Stream
  text(): string
  events(): Received[]
  waitFor(condition: (events: Received[]) => boolean): Promise<void>
  readonly closed: Promise<void>
}

function open(
  session: ClientHttp2Session,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
): Http2Reader {
  const stream = session.request({ ':path': path, ...headers }, { endStream: body === undefined })
  if (body !== undefined) stream.end(body)
  const waiting = new Set<() => void>()
  let text = ''
  stream.setEncoding('utf8').on('data', (part) => {
    text += part
    for (const look of waiting) look()
  })
  stream.on('error', () => stream.destroy())
  const reader: Http2Reader = {
    stream,
    text: () => text,
    events: () => parse(text).events,
    waitFor: (condition) =>
      new Promise((done) => {
        const look = () => {
          if (!condition(reader.events())) return
          waiting.delete(look)
          done()
        }
        waiting.add(look)
        look()
      }),
    closed: new Promise((done) => void stream.once('close', () => done())),
  }
  return reader
}

/** Resolves when the hub has seen this many readers go. */
function closes(hub: Hub, count: number): Promise<void> {
  let left = count
  return new Promise((resolve) => {
    hub.on('close', () => {
      left -= 1
      if (left === 0) resolve()
    })
  })
}
