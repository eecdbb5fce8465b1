import { connect, type Socket } from 'node:net'
import type { Grant, HubOptions } from '@rejoin/hub'
import { describe, expect, onTestFinished, test } from 'vitest'
import { serveHub, type TestServer } from '../support/http-server.ts'

const kilobyte = 1024

describe('a body by somebody who may not publish (§5.7)', () => {
  const reader: Grant = { subject: 'ada', subscribe: ['*'], publish: ['hers'] }

  test.each([
    ['to a channel', '/publish/a', reader],
    ['in an envelope, without a right to publish anything', '/publish', { subject: 'ada', subscribe: ['*'] }],
  ])('is rejected before it is read, %s', async (_what, path, grant) => {
    const server = await serveHub({}, { authorize: () => grant })
    // Half of the body never comes, so an answer means that nobody waits for it.
    const answer = await server.raw(`${head(path, 200 * kilobyte)}${'x'.repeat(100 * kilobyte)}`, /forbidden/)
    expect(answer).toMatch(/^HTTP\/1.1 403/)
    expect(server.hub.port.memory.bodies.bytes).toBe(0)
  })
})

describe('bodies that never become whole', () => {
  test('hold no more than maxIncomingBytes together, and an honest publish goes through', async () => {
    const maxIncomingBytes = 1024 * kilobyte
    const server = await serveLimited({ maxIncomingBytes })
    const rejected = { count: 0 }
    const sockets: Socket[] = []
    for (let n = 0; n < 40; n += 1) sockets.push(await begin(server, rejected))
    // Of 40 times 100 KiB there is room for ten.
    await expect.poll(() => rejected.count).toBe(30)
    expect(server.hub.port.memory.bodies.bytes).toBeLessThanOrEqual(maxIncomingBytes)
    const answer = await fetch(server.url('/publish/a'), { method: 'POST', body: 'x'.repeat(200 * kilobyte) })
    expect(answer.status).toBe(201)
    for (const socket of sockets) socket.destroy()
    await expect.poll(() => server.hub.port.memory.bodies.bytes).toBe(0)
  })

  test('are told when to send again', async () => {
    const server = await serveLimited({ maxIncomingBytes: 10 * kilobyte })
    const response = await fetch(server.url('/publish/a'), { method: 'POST', body: 'x'.repeat(100 * kilobyte) })
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await response.json()).toMatchObject({ error: { code: 'overloaded' } })
  })

  test('are whole when their last byte comes, however small the pieces are', async () => {
    const server = await serveHub()
    const stream = await server.open('/events/a')
    const pieces = '1\r\nx\r\n'.repeat(20_000)
    const request = `POST /publish/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${pieces}0\r\n\r\n`
    expect(await server.raw(request, /durability/)).toMatch(/^HTTP\/1.1 201/)
    await stream.waitFor((events) => events.length === 2)
    expect(stream.events[1]?.data).toBe('x'.repeat(20_000))
  })
})

function serveLimited(limits: HubOptions['limits']): Promise<TestServer> {
  return serveHub(limits ? { limits } : {})
}

function head(path: string, length: number): string {
  return `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`
}

/** Sends half of a body; resolves when the hub has it, or has rejected another for it. */
async function begin(server: TestServer, rejected: { count: number }): Promise<Socket> {
  const before = server.hub.port.memory.bodies.bytes + rejected.count
  const socket = connect(server.port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined).setEncoding('latin1')
  socket.on('data', (part: string) => {
    if (part.startsWith('HTTP/1.1 503')) rejected.count += 1
  })
  socket.write(`${head('/publish/a', 200 * kilobyte)}${'x'.repeat(100 * kilobyte)}`)
  await expect.poll(() => server.hub.port.memory.bodies.bytes + rejected.count).not.toBe(before)
  return socket
}
