import { once } from 'node:events'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { createHub, type Hub, type HubOptions } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { makeCertificate } from '../../../../test/support/certificate.ts'
import { serveHub, type TestServer } from '../support/http-server.ts'

const megabyte = 1024 * 1024
// One answer more than the bound may be on its way, with what JSON puts around its events. While it goes from the hub to its
// adapter it counts twice.
const oneAnswer = 2 * 1.2 * megabyte

describe('an answer that nobody reads (§4.14)', () => {
  test('holds back the polls pipelined behind it, and each is answered when the one before is read', async () => {
    const { hub, port } = await serveBig()
    const socket = idle(port, '/poll/big?lastEventId=earliest', 30)
    // The system's own buffers hold the first of them; then one waits, and no other is begun.
    await expect.poll(() => hub.port.memory.answers.bytes).toBeGreaterThan(0.5 * megabyte)
    const most = await watchMost(hub, () => [...hub.admin.connections()].length <= 1)
    expect(most).toBeLessThan(oneAnswer)
    let read = 0
    await new Promise<void>((resolve) => {
      let text = ''
      socket
        .setEncoding('latin1')
        .resume()
        .on('data', (part: string) => {
          text = text.slice(-20) + part
          read += text.match(/HTTP\/1\.1 200 OK/g)?.length ?? 0
          text = text.slice(-15)
          if (read === 30) resolve()
        })
    })
    await expect.poll(() => hub.port.memory.answers.bytes).toBe(0)
  })

  test('with hundreds of polls pipelined behind it has its connection cut', async () => {
    const { hub, port, connections } = await serveBig()
    const sockets = Array.from({ length: 5 }, () => idle(port, '/poll/big?lastEventId=earliest', 900))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    await expect.poll(connections).toBe(0)
    await expect.poll(() => hub.port.memory.answers.bytes).toBe(0)
  })

  test('is given up after the stall timeout, and observers are told', async () => {
    const { hub, port, connections } = await serveBig({ stallTimeoutMs: 400 })
    const told: number[] = []
    hub.on('unread', ({ pending }) => told.push(pending))
    idle(port, '/poll/big?lastEventId=earliest', 30)
    await expect.poll(() => told.length).toBe(1)
    await expect.poll(connections).toBe(0)
    await expect.poll(() => hub.port.memory.answers.bytes).toBe(0)
    expect(told).toHaveLength(1)
    expect(told[0]).toBeGreaterThan(0)
  })

  test('makes way when memory for answers is short, and a reader that reads gets every event', async () => {
    const maxAnswerBytes = 4 * megabyte
    const { hub, port, url } = await serveBig({ limits: { maxAnswerBytes } })
    for (let n = 0; n < 20; n += 1) idle(port, '/poll/big?lastEventId=earliest', 30)
    await expect.poll(() => hub.port.memory.answers.bytes).toBeGreaterThan(maxAnswerBytes / 2)
    let cursor = 'earliest'
    let events = 0
    let most = 0
    // Shorter answers, and 503 with Retry-After, are what it may meet on the way; a loss is not.
    while (events < 12) {
      const response = await fetch(url(`/poll/big?lastEventId=${cursor}`))
      most = Math.max(most, hub.port.memory.answers.bytes)
      const body = (await response.json()) as { events: { type: string }[]; cursor: string }
      if (response.status === 503) {
        expect(response.headers.get('retry-after')).not.toBeNull()
        await new Promise((resolve) => setImmediate(resolve))
        continue
      }
      events += body.events.filter(({ type }) => type === 'message').length
      cursor = body.cursor
    }
    expect(events).toBe(12)
    expect(most).toBeLessThan(maxAnswerBytes + oneAnswer)
  })

  test('is bounded with all others of its connection over HTTP/2, whatever window the reader opens', async () => {
    const hub = await createHub({ log: memoryLog() })
    await fill(hub)
    const server = createHttp2Server(nodeHandler(hub))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const session = connectHttp2(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 0 } })
    session.on('error', () => undefined)
    onTestFinished(async () => {
      session.destroy()
      await hub.close()
      await new Promise((resolve) => server.close(resolve))
    })
    const statuses = Array.from({ length: 100 }, () => {
      const stream = session.request({ ':path': '/poll/big?lastEventId=earliest' })
      stream.on('error', () => undefined)
      return new Promise((resolve) => stream.once('response', (headers) => resolve(headers[':status'])))
    })
    await Promise.all(statuses)
    expect(hub.port.memory.answers.bytes).toBeGreaterThan(2 * megabyte)
    await expect.poll(() => hub.port.memory.answers.bytes).toBeLessThan(4 * megabyte + oneAnswer)
    session.destroy()
    await expect.poll(() => hub.port.memory.answers.bytes).toBe(0)
  })
})

const certificate = makeCertificate()

test.skipIf(!certificate)('hundreds of polls pipelined over TLS have their connection cut', async () => {
  const hub = await createHub({ log: memoryLog() })
  const failures: unknown[] = []
  hub.on('error', ({ cause }) => failures.push(cause))
  const server = createHttpsServer({ ...certificate }, nodeHandler(hub))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await hub.close()
    await new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }).on('error', () => undefined)
  socket.write('GET /poll/a HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(900))
  await new Promise((resolve) => socket.resume().once('close', resolve))
  expect(failures).toEqual([])
})

describe('a stream pipelined behind another', () => {
  test('begins when the first has ended, and takes no room before that', async () => {
    const { hub, raw } = await serveHub({ limits: { maxConnections: 1 } })
    const head = 'HTTP/1.1\r\nHost: x\r\n\r\n'
    const connected: string[] = []
    hub.on('connect', ({ connection, channels: [channel] }) => {
      connected.push(channel as string)
      if (channel === 'a') setImmediate(() => hub.admin.disconnectHere(connection))
    })
    const text = await raw(
      `GET /events/a ${head}GET /events/b ${head}`,
      /event: hello[\s\S]*event: hello\ndata: .*\n\n/,
    )
    expect(connected).toEqual(['a', 'b'])
    expect(text).toMatch(/event: close[\s\S]*HTTP\/1\.1 200 OK[\s\S]*event: hello/)
  })

  test('costs its connection when hundreds wait there, and no session is left of them', async () => {
    const { hub, port, connections } = await serveBig()
    const sockets = Array.from({ length: 5 }, () => idle(port, '/events/big?lastEventId=earliest', 900))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    await expect.poll(connections).toBe(0)
    await expect.poll(() => [...hub.admin.connections()]).toEqual([])
  })
})

/** A hub with a channel of 1.2 MB. */
async function serveBig(options: Partial<HubOptions> = {}): Promise<TestServer> {
  const server = await serveHub(options)
  await fill(server.hub)
  return server
}

async function fill(hub: Hub): Promise<void> {
  for (let n = 0; n < 12; n += 1) await hub.publish('big', { text: 'x'.repeat(100_000) })
}

/** Sends the same request so many times, and reads nothing of the answers. */
function idle(port: number, path: string, times: number): Socket {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined).pause()
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(times))
  return socket
}

/** The most bytes of answers over some turns of the loop, in each of which `holds` must be true. */
async function watchMost(hub: Hub, holds: () => boolean): Promise<number> {
  let most = 0
  for (let n = 0; n < 200; n += 1) {
    expect(holds()).toBe(true)
    most = Math.max(most, hub.port.memory.answers.bytes)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return most
}
