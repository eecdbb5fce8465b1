import type { Socket } from 'node:net'
import type { Attack, Target } from './attack.ts'
import { askOnce, get, keepDoing, keepOpen, openUnread, post } from './sockets.ts'

/** Many of something that is cheap alone. */
export const floods: readonly Attack[] = [
  {
    name: 'resets',
    says: '50 at once: a stream is asked for and the connection reset',
    run: (target, stop) => keepDoing(target, 50, stop, () => askAndReset(target)),
  },
  {
    name: 'churn',
    says: '50 at once: a stream is opened, greeted and left',
    run: (target, stop) => keepDoing(target, 50, stop, () => askOnce(target, get(`/events/${target.long}`))),
  },
  {
    name: 'hot polls',
    says: '50 at once: polls that wait for nothing',
    run: (target, stop) => keepDoing(target, 50, stop, () => askOnce(target, get(`/poll/orders/1?waitMs=0&replay=1`))),
  },
  {
    name: 'pipelined requests',
    says: '120 connections, a stream or a probe on each, and 1,700 pipelined requests behind it that nobody has a right to',
    run(target, stop) {
      let next = 0
      return keepOpen(target, 120, stop, () => {
        next += 1
        return openUnread(target, pipelined(next % 2 === 0 ? target.long : probe, 'POST'))
      })
    },
  },
  {
    name: 'pipelined reports',
    says: '120 connections with 1,700 pipelined reports each, which are answered as soon as they are read',
    run: (target, stop) => keepOpen(target, 120, stop, () => openUnread(target, post('/log', '{}').repeat(1700))),
  },
  {
    name: 'silent connections',
    says: '1,000 connections that say nothing, opened again when they are closed',
    run: (target, stop) => keepOpen(target, 1000, stop, () => openUnread(target, '')),
  },
  {
    name: 'slow heads',
    says: '500 connections that send a header byte by byte',
    run: (target, stop) =>
      keepOpen(target, 500, stop, () => drip(openUnread(target, 'GET /events/a HTTP/1.1\r\nX-Slow: '))),
  },
  {
    name: 'bodies without a right',
    says: '1,000 connections that send 254 KB to publish and may not',
    run: (target, stop) => keepOpen(target, 1000, stop, () => openUnread(target, unfinishedBody)),
  },
  {
    name: 'small chunks',
    says: '100 connections: streams, polls, reports and publishes without a right that go on with 200,000 chunks of one byte',
    run(target, stop) {
      let next = 0
      const lines = ['GET /events/orders/1', 'GET /poll/orders/1', 'POST /log', 'POST /publish/orders/1']
      return keepOpen(target, 100, stop, () => {
        next += 1
        const head = `${lines[next % lines.length]} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n`
        return openUnread(target, head + smallChunks)
      })
    },
  },
  {
    name: 'forged tokens',
    says: '50 at once: tokens of 83 wrong kinds in turn',
    run(target, stop) {
      let next = 0
      return keepDoing(target, 50, stop, () => {
        next += 1
        return askOnce(target, get('/events/orders/1', [`Authorization: Bearer ${forgedToken(next % 83)}`]))
      })
    },
  },
  {
    name: 'tickets',
    says: '50 at once: tickets are asked for without a right to one, and made up',
    run(target, stop) {
      let next = 0
      return keepDoing(target, 50, stop, () => {
        next += 1
        return askOnce(
          target,
          next % 2 ? post('/ticket', '') : get(`/events/orders/1?ticket=${'t'.repeat(next % 200)}`),
        )
      })
    },
  },
  {
    name: 'malformed requests',
    says: '50 at once: requests that are none, or name two hosts, or another',
    run(target, stop) {
      let next = 0
      return keepDoing(target, 50, stop, () => {
        next += 1
        return askOnce(target, malformed[next % malformed.length] as string)
      })
    },
  },
  {
    name: 'many keys',
    says: '32 at once: publishes of its own, each under another idempotency key',
    run(target, stop) {
      let next = 0
      return keepDoing(target, 32, stop, () => {
        next += 1
        const headers = [`Authorization: Bearer ${target.key}`, `Idempotency-Key: mallory-${next}`, 'Connection: close']
        return askOnce(target, post('/publish/mallory/1', '1', headers))
      })
    },
  },
]

/** A stream that does not end, and requests behind it, in one write. */
export function pipelined(channel: string, method: 'GET' | 'POST'): string {
  return get(`/events/${channel}`) + `${method} /x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`.repeat(1700)
}

const probe = 'rejoin.doctor/silent/0123456789abcdef'

const smallChunks = '1\r\nx\r\n'.repeat(200_000)

function askAndReset(target: Target): Promise<void> {
  return new Promise((resolve) => {
    const socket = openUnread(target, '')
    socket.once('connect', () => socket.write(get('/events/orders/1'), () => socket.resetAndDestroy()))
    socket.once('close', () => resolve())
  })
}

function drip(socket: Socket): Socket {
  const timer = setInterval(() => socket.write('x'), 500)
  socket.once('close', () => clearInterval(timer))
  return socket
}

const unfinishedBody = post('/publish/orders/1', 'x'.repeat(254 * 1024)).replace(
  /Content-Length: \d+/,
  'Content-Length: 262144',
)

function forgedToken(kind: number): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const algorithms = ['none', 'HS256', 'RS256', 'ES256', 'HS512', 'EdDSA', '']
  const claims = { sub: 'admin', exp: 4e9, rejoin: { subscribe: ['*'], publish: ['*'] } }
  if (kind % 12 === 11) return 'x'.repeat(kind * 80)
  const header = { alg: algorithms[kind % algorithms.length], typ: 'JWT', kid: '../'.repeat(kind) }
  return `${part(header)}.${part(claims)}.${kind % 2 ? '' : Buffer.alloc(kind + 1, kind).toString('base64url')}`
}

const malformed = [
  'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
  'GET http://evil.example/events/a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n',
  'GET /events/a HTTP/1.1\r\nHost: evil.example\r\n\r\n',
  'GET /events/a HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n',
  'POST /publish/a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n',
  'POST /publish/a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'POST /publish/a HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n',
  `GET /events/a HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`,
  'GET /events/%ff%fe HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n',
  'GET /events/r/../q HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n',
  `GET /events/a?lastEventId=${'9'.repeat(4000)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`,
  'TRACE * HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n',
  '\u0016\u0003\u0001\u0000\u00ee TLS to a plain port\r\n\r\n',
]
