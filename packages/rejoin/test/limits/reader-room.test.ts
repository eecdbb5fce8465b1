import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http'
import { type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2'
import { request as requestHttps } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { inTurn } from '../../src/http/chain.ts'
import { createServer } from '../../src/http/http-server.ts'
import { keepRoom, readerRoom } from '../../src/limits/reader-room.ts'
import { certificateFiles, hasOpenssl } from '../support/certificate.ts'

const room = 16
const forReaders = 14

const kinds = {
  'HTTP/1': { ask: askHttp1(requestHttp) },
  'HTTP/1 over TLS': { tls: { http2: false }, ask: askHttp1(requestHttps) },
  'HTTP/1 over TLS, beside HTTP/2': { tls: { http2: true }, ask: askHttp1(requestHttps) },
  'HTTP/2': { tls: { http2: true }, ask: askHttp2 },
} satisfies Record<string, Kind>

describe.each(Object.entries<Kind>(kinds).filter(([, { tls }]) => !tls || hasOpenssl))('over %s', (_name, kind) => {
  test('readers leave room for those who publish, and come back when there is some for them', async () => {
    const { ask, publish, rejections, connections } = await crowdable(kind)
    const readers = await Promise.all(Array.from({ length: forReaders }, () => ask('/events/demo')))
    const greetings = readers.map((reader) => until(reader, 'event: hello'))
    await Promise.all(greetings)

    const away = await ask('/events/demo')
    expect(away.status).toBe(200)
    // Those of HTTP/2 are closed without a word for it.
    expect(away.headers.connection).toBe(kind.ask === askHttp2 ? undefined : 'close')
    expect(await all(away)).toMatch(/^retry: \d+\nevent: close\ndata: \{"reason":"overloaded"\}\n\n$/)
    const told = await ask('/events/demo?reject=status')
    expect([told.status, Number(told.headers['retry-after'])]).toEqual([503, expect.closeTo(6, -1)])
    expect((await ask('/poll/demo')).status).toBe(503)
    expect(rejections).toEqual(['connections', 'connections', 'connections'])

    // One after the other, each over a connection of its own, and more of them than there is room for.
    for (let event = 0; event < room; event += 1) expect(await publish()).toBe(201)
    expect(rejections).not.toContain('sockets')

    for (const { leave } of readers) leave()
    await expect.poll(connections).toBe(0)
    expect(await until(await ask('/events/demo'), 'event: hello')).toContain('event: hello')
  })

  test('readers that come all at once get all the room there is for them', async () => {
    const { ask } = await crowdable(kind)
    const readers = await Promise.all(Array.from({ length: room }, () => ask('/events/demo')))
    const firsts = await Promise.all(readers.map((reader) => until(reader, '\n\n')))
    expect(firsts.filter((text) => text.includes('event: hello'))).toHaveLength(forReaders)
    expect(firsts.filter((text) => text.includes('"reason":"overloaded"'))).toHaveLength(room - forReaders)
  })

  test('connections beyond what the system bears are closed unheard, counted, and change nothing for the others', async () => {
    const { publish, rejections, port, connections } = await crowdable(kind)
    const idle = Array.from({ length: room - 1 }, () => {
      const socket = connect(port, '127.0.0.1').on('error', () => socket.destroy())
      onTestFinished(() => void socket.destroy())
      return socket
    })
    await expect.poll(connections).toBe(room - 1)
    expect(await publish()).toBe(201)
    await expect.poll(connections).toBe(room - 1)

    const last = connect(port, '127.0.0.1').on('error', () => last.destroy())
    onTestFinished(() => void last.destroy())
    await expect.poll(connections).toBe(room)
    await expect(publish()).rejects.toThrow()
    expect(rejections).toEqual(['sockets'])

    for (const socket of idle) socket.destroy()
    await expect.poll(connections).toBe(1)
    expect(await publish()).toBe(201)
    expect(rejections).toEqual(['sockets'])
  })
})

interface Kind {
  readonly tls?: { readonly http2: boolean }
  ask(port: number, path: string, sent?: Sent): Promise<Reply>
}

interface Sent {
  readonly method?: string
  readonly body?: string
}

interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly stream: IncomingMessage | ClientHttp2Stream
  /** Closes the connection, which was made for this alone. */
  leave(): void
}

/** A server with room for 16 connections, and all who ask over connections of their own. */
async function crowdable({ tls, ask }: Kind) {
  const hub = await createHub({ log: memoryLog() })
  onTestFinished(() => hub.close())
  const rejections: string[] = []
  const onReject = (kind: string) => void rejections.push(kind)
  const chain = [keepRoom({ room: readerRoom(room), retryMs: () => 2000, onReject })]
  const http = createServer(
    {
      maxSockets: room,
      maxSocketsPerIp: Number.POSITIVE_INFINITY,
      ...(tls && { tls: { ...tls, ...certificate() } }),
      onReject,
    },
    inTurn(chain, nodeHandler(hub), hub.port.failed),
  )
  http.server.listen(0, '127.0.0.1')
  await once(http.server, 'listening')
  onTestFinished(() => void http.server.close())
  const { port } = http.server.address() as AddressInfo
  const connections = () =>
    new Promise<number>((resolve, reject) =>
      http.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    )
  const publish = async () => {
    const reply = await ask(port, '/publish/demo', { method: 'POST', body: 'x' })
    await all(reply)
    return reply.status
  }
  return { rejections, port, connections, publish, ask: (path: string) => ask(port, path) }
}

function certificate() {
  const { cert, key } = certificateFiles('localhost')
  return { cert: readFileSync(cert), key: readFileSync(key) }
}

function askHttp1(begin: (options: RequestOptions) => ReturnType<typeof requestHttp>): Kind['ask'] {
  return async (port, path, { method = 'GET', body } = {}) => {
    const trusting = { host: '127.0.0.1', port, rejectUnauthorized: false }
    // As a browser asks, which would like to use the connection again.
    const headers = { connection: 'keep-alive' }
    const outgoing = begin({ ...trusting, path, method, headers, agent: false })
    onTestFinished(() => void outgoing.destroy())
    outgoing.end(body)
    const [stream] = (await once(outgoing, 'response')) as [IncomingMessage]
    outgoing.on('error', () => undefined)
    const leave = () => void outgoing.destroy()
    return { status: stream.statusCode ?? 0, headers: stream.headers, stream: stream.setEncoding('utf8'), leave }
  }
}

async function askHttp2(port: number, path: string, { method = 'GET', body }: Sent = {}): Promise<Reply> {
  const session = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
  const leave = () => session.destroy()
  onTestFinished(leave)
  const failed = once(session, 'close').then(() => {
    throw new Error('The connection was closed.')
  })
  failed.catch(() => undefined)
  session.on('error', leave)
  const stream = session.request({ ':path': path, ':method': method }, { endStream: body === undefined })
  stream.on('error', () => stream.destroy())
  if (body !== undefined) stream.end(body)
  const [headers] = (await Promise.race([once(stream, 'response'), failed])) as [Record<string, unknown>]
  return { status: Number(headers[':status']), headers, stream: stream.setEncoding('utf8'), leave }
}

async function all({ stream }: Reply): Promise<string> {
  let text = ''
  for await (const part of stream) text += part
  return text
}

async function until({ stream }: Reply, text: string): Promise<string> {
  let read = ''
  for await (const part of stream.iterator({ destroyOnReturn: false })) {
    read += part
    if (read.includes(text)) return read
  }
  throw new Error(`The stream ended without ${JSON.stringify(text)}: ${JSON.stringify(read)}`)
}
