import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createServer } from '../../src/http/http-server.ts'
import { certificateFiles, hasOpenssl } from '../support/certificate.ts'

const crowd = '127.0.0.2'
const honest = '127.0.0.3'

describe.each(hasOpenssl ? ['HTTP', 'HTTPS'] : ['HTTP'])('over %s', (scheme) => {
  test('an address that keeps asking for little over every connection leaves room for readers, publishers and health checks', async () => {
    const { open, rejections } = await serverFor(40, {}, scheme)
    const reader = await open(honest, 'GET /events/demo')
    await reader.until('event: hello')
    for (let n = 0; n < 100; n += 1) await (await open(crowd, 'GET /nothing')).until('\r\n\r\n')
    for (let n = 0; n < 10; n += 1) {
      const publisher = await open(honest, 'POST /publish/demo', 'x')
      await publisher.until('201 Created')
    }
    await reader.until('data: x')
    expect(new Set(rejections)).toEqual(new Set(['sockets']))
  })

  test('an address gets no more than its connections, and idle ones go first', async () => {
    const { open, rejections } = await serverFor(40, { maxSocketsPerIp: 4 }, scheme)
    const readers = await Promise.all([1, 2, 3].map(() => open(crowd, 'GET /events/demo')))
    for (const reader of readers) await reader.until('event: hello')
    const idle = await open(crowd, 'GET /nothing')
    await idle.until('404')
    await (await open(crowd, 'GET /events/demo')).until('event: hello')
    await idle.closed
    expect(rejections).toEqual(['sockets'])
    const last = await open(crowd, 'GET /events/demo')
    await last.closed
    expect(rejections).toEqual(['sockets', 'sockets'])
    await (await open(honest, 'GET /events/demo')).until('event: hello')
    expect(readers.every(({ socket }) => !socket.destroyed)).toBe(true)
  })

  test('behind a proxy no connection is closed for its address', async () => {
    const { open, rejections } = await serverFor(40, { maxSocketsPerIp: Number.POSITIVE_INFINITY }, scheme)
    const idle = await Promise.all(Array.from({ length: 40 }, () => open(crowd, 'GET /nothing')))
    for (const { until } of idle) await until('404')
    expect(idle.every(({ socket }) => !socket.destroyed)).toBe(true)
    await (await open(honest, 'GET /nothing')).closed
    expect(rejections).toEqual(['sockets'])
  })
})

async function serverFor(maxSockets: number, limits: { maxSocketsPerIp?: number }, scheme: string) {
  const hub = await createHub({ log: memoryLog() })
  onTestFinished(() => hub.close())
  const rejections: string[] = []
  const isTls = scheme === 'HTTPS'
  const { cert = '', key = '' } = isTls ? certificateFiles('localhost') : {}
  const tls = isTls && { tls: { cert: readFileSync(cert), key: readFileSync(key), http2: true } }
  const onReject = (kind: string) => void rejections.push(kind)
  const http = createServer({ maxSockets, ...limits, ...tls, onReject }, nodeHandler(hub))
  http.server.listen(0, '127.0.0.1')
  await once(http.server, 'listening')
  onTestFinished(() => void http.server.close())
  const { port } = http.server.address() as AddressInfo

  /** Sends a request from an address of its own over a connection of its own, which stays open. */
  async function open(localAddress: string, line: string, body = '') {
    const tcp = connect({ port, host: '127.0.0.1', localAddress })
    const socket: Socket = isTls ? connectTls({ socket: tcp, rejectUnauthorized: false }) : tcp
    onTestFinished(() => void socket.destroy())
    let text = ''
    const closed = new Promise((resolve) => socket.on('error', () => undefined).once('close', resolve))
    socket.setEncoding('utf8').on('data', (part) => {
      text += part
    })
    const until = (awaited: string) => expect.poll(() => text, { timeout: 20_000 }).toContain(awaited)
    socket.write(`${line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    return { socket, closed, until }
  }
  return { open, rejections }
}
