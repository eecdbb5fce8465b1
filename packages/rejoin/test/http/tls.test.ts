import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { preface, resetRequests } from '../../../../test/support/http2-frames.ts'
import { watchCertificate } from '../../src/http/certificate.ts'
import type { Logging } from '../../src/logging/logging.ts'
import { type ServeOptions, serve } from '../../src/serve.ts'
import { certificateFiles, hasOpenssl } from '../support/certificate.ts'
import { serving } from '../support/http.ts'

describe.skipIf(!hasOpenssl)('TLS (needs openssl)', () => {
  test('serves those who speak HTTP/1 and those who speak HTTP/2', async () => {
    const { url } = await secured()
    expect(await get(url, '/healthz')).toMatchObject({ status: 200, version: '1.1' })
    const session = http2(url)
    const health = await request(session, { ':path': '/healthz' })
    expect(health.status).toBe(200)
    const published = await request(session, { ':path': '/publish/demo', ':method': 'POST' }, 'one')
    expect(published.status).toBe(201)
    const polled = await request(session, { ':path': '/poll/demo?replay=1' })
    expect(JSON.parse(polled.text).events.at(-1)).toMatchObject({ data: 'one' })
  })

  test('readers that return together get the same events, over HTTP/1 and HTTP/2', async () => {
    const { url, hub } = await secured()
    const { id } = await hub.publish('räume', { data: 0 })
    const texts = Array.from({ length: 40 }, (_, n) => `${n} ${'ä'.repeat(50)}`)
    for (const data of texts) await hub.publish('räume', { data })
    const path = `/events/r%C3%A4ume?added=r%C3%A4ume&cursor=${id}`
    const session = http2(url)
    const streams = [
      ...(await Promise.all(Array.from({ length: 3 }, () => open(url, path)))),
      ...Array.from({ length: 3 }, () => session.request({ ':path': path })),
    ]
    for (const stream of streams) {
      let text = ''
      stream.setEncoding('utf8').on('data', (part) => {
        text += part
      })
      onTestFinished(() => void stream.destroy())
      await expect.poll(() => text).toContain(`data: "${texts.at(-1)}"\n\n`)
      expect(text.match(/^event: (.+)$/gm)).toEqual(['event: hello', 'event: sync-required'])
      expect(text.match(/(?<=^data: )"\d+ .*(?=$)/gm)).toEqual(texts.map((data) => JSON.stringify(data)))
    }
  })

  test('is open to this machine only, over HTTP/2 as well (§8)', async () => {
    const { url } = await secured()
    const session = http2(url)
    const { status } = await request(session, { ':path': '/healthz', ':authority': 'example.com' })
    expect(status).toBe(403)
    expect((await request(session, { ':path': '/healthz', origin: 'https://example.com' })).status).toBe(403)
  })

  test('limits hold over HTTP/2, with and without a length', async () => {
    // A machine with much else to do may take half a second for them, and the last one would be welcome then.
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const { url } = await secured({ limits: { maxBodyBytes: 10, maxPublishesPerSecond: 2 } })
    const session = http2(url)
    const publish = (body: string, headers = {}) =>
      request(session, { ':path': '/publish/demo', ':method': 'POST', ...headers }, body)
    expect((await publish('eleven char')).status).toBe(413)
    expect((await publish('eleven char', { 'content-length': '11' })).status).toBe(413)
    expect((await publish('ten  chars')).status).toBe(201)
    expect((await publish('ten  chars')).status).toBe(429)
  })

  // CVE-2023-44487: to ask and take it back costs the asker nothing, and a server all that it has begun.
  test.each(['/events/demo', '/poll/demo?waitMs=20000', '/publish/demo'])(
    'a client that resets its requests for %s again and again is cut off, and leaves nothing behind',
    async (path) => {
      // Cut off at about 1,100, by what nghttp2 counts.
      const most = 20_000
      const { url, hub } = await secured()
      const session = http2(url)
      await once(session, 'connect')
      const head = { ':path': path, ':method': path.startsWith('/publish') ? 'POST' : 'GET' }
      const turn = () => new Promise((resolve) => setImmediate(resolve))
      let asked = 0
      for (; !session.destroyed && !session.closed && asked < most; asked += 50) {
        const streams = Array.from({ length: 50 }, () => session.request(head, { endStream: false }))
        for (const stream of streams) stream.on('error', () => undefined)
        // Taken back in the same turn, it would not even be sent.
        await turn()
        for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL)
        await turn()
      }
      expect(asked).toBeLessThan(most)
      await expect.poll(() => [...hub.admin.connections()]).toEqual([])
      expect(await get(url, '/healthz')).toMatchObject({ status: 200 })
    },
  )

  test('requests that one packet opens and resets are never served, and close their connection', async () => {
    const { url, hub } = await secured()
    let served = 0
    hub.on('connect', () => {
      served += 1
    })
    const socket = connectTls({
      port: portOf(url),
      host: '127.0.0.1',
      rejectUnauthorized: false,
      ALPNProtocols: ['h2'],
    })
    onTestFinished(() => void socket.destroy())
    await once(socket, 'secureConnect')
    socket.write(preface)
    await once(socket, 'data')
    socket.write(resetRequests('/events/demo', 200))
    await once(socket.resume(), 'close')
    expect(served).toBe(0)
    expect(await get(url, '/healthz')).toMatchObject({ status: 200 })
  })

  // RFC 9113, section 6.9: a client whose window is empty takes the head of an answer and nothing of its body.
  test.each(['/', '/openapi.json', '/healthz'])(
    'answers from %s that a client does not take are given up, and were in memory once',
    async (path) => {
      const { url, hub } = await secured({ hub: { stallTimeoutMs: 1000 } })
      await get(url, path)
      const session = connectHttp2(`https://localhost:${portOf(url)}`, {
        rejectUnauthorized: false,
        settings: { initialWindowSize: 0 },
      })
      session.on('error', () => session.destroy())
      onTestFinished(() => session.destroy())
      await once(session, 'connect')
      const before = process.memoryUsage().arrayBuffers
      const streams = Array.from({ length: 200 }, () => session.request({ ':path': path }))
      const closed = streams.map((stream) =>
        once(
          stream.on('error', () => undefined),
          'close',
        ),
      )
      await Promise.all(streams.map((stream) => once(stream, 'response')))
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4e6)
      await Promise.all(closed)
      expect(streams.map(({ rstCode }) => rstCode)).toEqual(streams.map(() => constants.NGHTTP2_CANCEL))
      expect(hub.port.memory.answers.bytes).toBe(0)
    },
  )

  test('HTTP/2 can be left out', async () => {
    const files = certificateFiles('localhost')
    const { url } = await serving({ tls: { ...files, http2: false } })
    const socket = connectTls({
      port: portOf(url),
      host: '127.0.0.1',
      rejectUnauthorized: false,
      ALPNProtocols: ['h2'],
    })
    onTestFinished(() => void socket.destroy())
    const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException]
    expect(error.code).toMatch(/ALERT_NO_APPLICATION_PROTOCOL|ECONNRESET/)
    expect(await get(url, '/healthz')).toMatchObject({ status: 200, version: '1.1' })
  })

  test('a cut of the playground takes its streams over HTTP/1, and those that come until it is over', async () => {
    const { url } = await secured()
    const stream = await open(url, cuttable)
    const broken = once(stream, 'error')
    expect((await get(url, '/playground/cut?tab=aaaaaaaa&ms=30000', 'POST')).status).toBe(204)
    expect(await broken).toMatchObject([{ code: 'ECONNRESET' }])
    await expect(get(url, cuttable)).rejects.toMatchObject({ code: 'ECONNRESET' })
  })

  test('a cut of the playground takes its streams out of a connection of HTTP/2, and nothing else', async () => {
    const { url } = await secured()
    const session = http2(url)
    const streams = [cuttable, '/events/demo'].map((path) => session.request({ ':path': path }))
    const [cut, other] = streams as [ClientHttp2Stream, ClientHttp2Stream]
    await Promise.all(streams.map((stream) => once(stream, 'data')))
    const broken = once(cut, 'error')
    const order = { ':path': '/playground/cut?tab=aaaaaaaa&ms=30000', ':method': 'POST' }
    expect((await request(session, order)).status).toBe(204)
    await broken
    const late = session.request({ ':path': cuttable })
    await once(late, 'error')
    expect([cut.rstCode, late.rstCode]).toEqual([constants.NGHTTP2_CONNECT_ERROR, constants.NGHTTP2_CONNECT_ERROR])
    const next = once(other, 'data')
    expect((await request(session, { ':path': '/publish/demo', ':method': 'POST' }, 'one')).status).toBe(201)
    expect(String(await next)).toContain('data: one')
  })

  test('closing ends streams of both kinds in order', async () => {
    const { url, close } = await serve({ port: 0, tls: certificateFiles('localhost') })
    const session = http2(url)
    const stream = session.request({ ':path': '/events/demo' })
    let text = ''
    stream.setEncoding('utf8').on('data', (part) => {
      text += part
    })
    await once(stream, 'data')
    const ended = once(stream, 'close')
    await close()
    await ended
    expect(text).toContain('event: close\ndata: {"reason":"drain"}')
  })
})

describe.skipIf(!hasOpenssl)('a certificate that is renewed (needs openssl)', () => {
  test('is used by new connections, and those that are open stay', async () => {
    const { url, files, reloadCertificate, outcomes } = await secured()
    expect(await commonName(url)).toBe('first.example')
    const session = http2(url)
    const stream = session.request({ ':path': '/events/demo' }).setEncoding('utf8')
    await once(stream, 'data')
    files.write('second.example')
    reloadCertificate?.()
    expect(await commonName(url)).toBe('second.example')
    expect(outcomes).toEqual([{}])
    const next = once(stream, 'data')
    await request(session, { ':path': '/publish/demo', ':method': 'POST' }, 'still here')
    expect(String(await next)).toContain('still here')
  })

  test('is not used when it does not fit its key, which is told, and the old one stays', async () => {
    const { url, files, reloadCertificate, outcomes } = await secured()
    writeFileSync(files.key, 'no key')
    reloadCertificate?.()
    expect(outcomes).toMatchObject([{ cause: { code: 'invalid-option' } }])
    expect(await commonName(url)).toBe('first.example')
  })

  test('is noticed by itself', async () => {
    const files = certificateFiles('first.example')
    const renewed: Buffer[] = []
    const certificate = watchCertificate(files, {
      everyMs: 20,
      onReload: (outcome) => 'pem' in outcome && renewed.push(outcome.pem.cert),
    })
    onTestFinished(() => certificate.close())
    await vi.waitFor(
      () => {
        // Again and again: what comes before the first look at the files is no change of them.
        files.write('second.example')
        expect(renewed).not.toEqual([])
      },
      { interval: 100, timeout: 10_000 },
    )
    expect(renewed[0]?.equals(certificate.cert)).toBe(false)
  })
})

describe.skipIf(!hasOpenssl)('slow clients over TLS (needs openssl)', () => {
  // Far longer than a handshake and a whole request take here, and short enough to be waited for.
  const limits = { headersTimeoutMs: 2000, requestTimeoutMs: 2000 }

  test.each([true, false])(
    'a connection of HTTP/1 that asks for nothing more is closed, HTTP/2 or not (%s)',
    async (http2) => {
      const { url } = await serving({ limits, tls: { ...certificateFiles('localhost'), http2 } })
      const socket = connectTls({ port: portOf(url), host: '127.0.0.1', rejectUnauthorized: false })
      onTestFinished(() => void socket.destroy())
      socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
      expect(String(await once(socket, 'data'))).toContain('200 OK')
      await once(socket, 'end')
    },
  )

  test('a connection that asks for nothing is closed', async () => {
    const { url } = await secured({ limits })
    const session = http2(url)
    await once(session, 'close')
  })

  test('connections that have asked are not counted as silent, over HTTP/1 and HTTP/2', async () => {
    const { url } = await secured({ limits: { maxSilentPerIp: 1 } })
    const readers = [await open(url, '/events/demo'), http2(url).request({ ':path': '/events/demo' })]
    const texts = ['', '']
    for (const [n, reader] of readers.entries()) reader.setEncoding('utf8').on('data', (text) => (texts[n] += text))
    const haveAll = (text: string) =>
      vi.waitFor(() => expect(texts.filter((all) => !all.includes(text))).toEqual([]), 5000)
    await haveAll('event: hello')
    const kept = connectTls({ port: portOf(url), host: '127.0.0.1', rejectUnauthorized: false })
    const closed = connectTls({ port: portOf(url), host: '127.0.0.1', rejectUnauthorized: false })
    for (const socket of [kept, closed]) {
      onTestFinished(() => void socket.destroy())
      socket.on('error', () => socket.destroy())
    }
    await once(closed.resume(), 'close')
    kept.write('POST /publish/demo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nstill')
    expect(String((await once(kept, 'data'))[0])).toContain('201')
    await haveAll('still')
  })

  test('a flood of handshakes that are begun, or done for nothing, costs no reader an event', async () => {
    const { url, hub } = await secured({ limits: { maxSilentPerIp: 50 } })
    const stream = await open(url, '/events/demo')
    let text = ''
    stream.setEncoding('utf8').on('data', (part) => (text += part))
    await vi.waitFor(() => expect(text).toContain('event: hello'), 5000)
    const begun = Array.from({ length: 200 }, () => {
      const socket = connect(portOf(url), '127.0.0.1')
      // The head of a record with a ClientHello of 508 bytes, of which one comes.
      socket.on('error', () => socket.destroy()).write(Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3]))
      onTestFinished(() => void socket.destroy())
      return once(socket.resume(), 'close')
    })
    let handshakes = 0
    const loops = Array.from({ length: 10 }, async () => {
      for (let n = 0; n < 20; n += 1) {
        const socket = connectTls({ port: portOf(url), host: '127.0.0.1', rejectUnauthorized: false })
        await once(socket, 'secureConnect')
        handshakes += 1
        socket.destroy()
      }
    })
    for (let n = 0; n < 20; n += 1) await hub.publish('demo', { data: n })
    await Promise.all(loops)
    await vi.waitFor(() => expect(text.match(/^data: \d+$/gm)).toHaveLength(20), 10_000)
    expect(handshakes).toBe(200)
    // Those that say nothing more are closed beyond the bound, long before the deadline for handshakes.
    let closed = 0
    for (const close of begun) void close.then(() => (closed += 1))
    await vi.waitFor(() => expect(closed).toBeGreaterThanOrEqual(150), 8000)
  }, 30_000)

  test('a body that does not come is given up, and other streams of the connection stay', async () => {
    const { url } = await secured({ limits })
    const session = http2(url)
    const stream = session.request({ ':path': '/events/demo' }).setEncoding('utf8')
    await once(stream, 'data')
    const slow = session.request({ ':path': '/publish/demo', ':method': 'POST' })
    slow.on('error', () => slow.destroy())
    slow.write('x')
    await once(slow, 'close')
    const next = once(stream, 'data')
    expect((await request(session, { ':path': '/publish/demo', ':method': 'POST' }, 'quick')).status).toBe(201)
    expect(String(await next)).toContain('quick')
  })

  test('behind a proxy, a hub that stops sends GOAWAY while it still answers what it has read', async () => {
    const { url, hub, close } = await secured({ trustProxy: true })
    const session = http2(url)
    const publish = () => request(session, { ':path': '/publish/demo', ':method': 'POST' }, 'late')
    expect((await publish()).status).toBe(201)
    const goaway = once(session, 'goaway')
    const closeHub = hub.close
    vi.spyOn(hub, 'close').mockImplementationOnce(async () => {
      await goaway
      await closeHub()
    })
    const stopped = close({ withinMs: 100 })
    expect((await publish()).status).toBe(201)
    const [code, lastStreamId] = await goaway
    expect([code, lastStreamId]).toEqual([constants.NGHTTP2_NO_ERROR, 3])
    await stopped
  })
})

const cuttable = '/events/playground/aaaaaaaa?tab=aaaaaaaa'

async function secured(options: ServeOptions = {}) {
  const files = certificateFiles('first.example')
  const outcomes: unknown[] = []
  const logging = {
    rejected: () => undefined,
    ready: () => undefined,
    watch: () => undefined,
    certificate: (outcome: unknown) => outcomes.push(outcome),
  } as unknown as Logging
  return { ...(await serving({ tls: files, logging, ...options })), files, outcomes }
}

function portOf(url: string): number {
  return Number(new URL(url).port)
}

async function commonName(url: string): Promise<string | undefined> {
  const socket = connectTls({ port: portOf(url), host: '127.0.0.1', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { subject } = socket.getPeerCertificate()
  socket.destroy()
  return String(subject.CN)
}

async function get(url: string, path: string, method = 'GET') {
  const answer = await open(url, path, method)
  answer.resume()
  return { status: answer.statusCode, version: answer.httpVersion }
}

function open(url: string, path: string, method = 'GET'): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options = { port: portOf(url), host: '127.0.0.1', path, method, rejectUnauthorized: false, agent: false }
    httpsRequest(options, resolve).on('error', reject).end()
  })
}

function http2(url: string): ClientHttp2Session {
  const session = connectHttp2(`https://localhost:${portOf(url)}`, { rejectUnauthorized: false })
  session.on('error', () => session.destroy())
  onTestFinished(() => session.destroy())
  return session
}

async function request(session: ClientHttp2Session, headers: Record<string, string>, body?: string) {
  const stream = session.request(headers, { endStream: body === undefined }).setEncoding('utf8')
  if (body !== undefined) stream.end(body)
  const [answer] = (await once(stream, 'response')) as [Record<string, unknown>]
  let text = ''
  for await (const part of stream) text += part
  return { status: Number(answer[':status']), text }
}
