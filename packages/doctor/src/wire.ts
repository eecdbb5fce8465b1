import type { IncomingHttpHeaders } from 'node:http'
import http from 'node:http'
import { connect as connectHttp2, type IncomingHttpHeaders as Http2Headers } from 'node:http2'
import https from 'node:https'
import type { Readable } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { RejoinError } from '@rejoin/protocol'

/** Sends requests to one server, in the version of HTTP that a browser would use. */
export interface Wire {
  readonly httpVersion: '1.1' | '2'
  /** Sends a request on a new connection, and resolves with the head of the answer. Rejects when no head comes in time. */
  open(url: URL, request?: WireRequest): Promise<Answer>
}

export interface WireRequest {
  readonly method?: 'GET' | 'OPTIONS'
  readonly headers?: Readonly<Record<string, string>>
}

export interface Answer {
  readonly status: number
  readonly headers: AnswerHeaders
  /** The body, decompressed. A broken connection ends it without an error: `isWhole` tells a break from an end. */
  readonly body: AsyncIterable<Buffer>
  /** Whether the body came to its announced end. */
  isWhole(): boolean
  close(): void
}

export interface AnswerHeaders {
  get(name: string): string | undefined
}

/** Negotiates the version of HTTP. Over plain HTTP, browsers speak 1.1 only. */
export async function createWire(url: URL, { headTimeoutMs = 8000 }: WireOptions = {}): Promise<Wire> {
  const isHttp2 = url.protocol === 'https:' && (await negotiated(url, headTimeoutMs)) === 'h2'
  const send = isHttp2 ? sendHttp2 : sendHttp1
  return {
    httpVersion: isHttp2 ? '2' : '1.1',
    open: (target, request = {}) => withTimeout(send(target, request), target, headTimeoutMs),
  }
}

export interface WireOptions {
  /**
   * How long to wait for the head of an answer, in milliseconds. A proxy that holds a whole probe back sends nothing for 6 s.
   * @defaultValue 8000
   */
  readonly headTimeoutMs?: number | undefined
}

function negotiated(url: URL, timeoutMs: number): Promise<string | false | null> {
  return new Promise((resolve, reject) => {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const socket = connectTls({
      host,
      port: Number(url.port || 443),
      servername: /^[\d.:]+$/.test(host) ? '' : host,
      ALPNProtocols: ['h2', 'http/1.1'],
    })
    socket.setTimeout(timeoutMs, () => socket.destroy(noAnswer(url, timeoutMs)))
    socket.once('secureConnect', () => {
      resolve(socket.alpnProtocol)
      socket.destroy()
    })
    socket.once('error', reject)
  })
}

interface Sending {
  readonly answer: Promise<Answer>
  abort(): void
}

function sendHttp1(url: URL, { method = 'GET', headers = {} }: WireRequest): Sending {
  const { request } = url.protocol === 'https:' ? https : http
  const sending = request(url, { method, headers, agent: false, ALPNProtocols: ['http/1.1'] } as https.RequestOptions)
  const answer = new Promise<Answer>((resolve, reject) => {
    sending.once('error', reject)
    sending.once('response', (response) => {
      // From here on, `isWhole` and the end of the body tell of an error.
      sending.on('error', () => undefined)
      resolve(
        answerOf(response.statusCode ?? 0, response.headers, response, {
          isWhole: () => response.complete,
          close: () => sending.destroy(),
        }),
      )
    })
  })
  sending.end()
  return { answer, abort: () => sending.destroy() }
}

function sendHttp2(url: URL, { method = 'GET', headers = {} }: WireRequest): Sending {
  const session = connectHttp2(url)
  const stream = session.request({ ':method': method, ':path': `${url.pathname}${url.search}`, ...headers })
  const close = () => session.destroy()
  const answer = new Promise<Answer>((resolve, reject) => {
    let ended = false
    session.on('error', reject)
    stream.on('error', reject)
    stream.once('end', () => {
      ended = stream.rstCode === 0
    })
    stream.once('close', () => session.close())
    stream.once('response', (head: Http2Headers) => {
      resolve(answerOf(Number(head[':status']), head, stream, { isWhole: () => ended, close }))
    })
  })
  stream.end()
  return { answer, abort: close }
}

function answerOf(
  status: number,
  headers: IncomingHttpHeaders,
  raw: Readable,
  ends: Pick<Answer, 'isWhole' | 'close'>,
): Answer {
  const get = (name: string) => {
    const value = headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }
  return { status, headers: { get }, body: quietly(decompressed(raw, get('content-encoding'))), ...ends }
}

function decompressed(raw: Readable, encoding: string | undefined): Readable {
  const create = { gzip: createGunzip, deflate: createInflate, br: createBrotliDecompress }[encoding ?? '']
  if (!create) return raw
  const plain = create()
  raw.once('error', () => plain.destroy())
  return raw.pipe(plain)
}

async function* quietly(body: Readable): AsyncGenerator<Buffer> {
  try {
    yield* body
  } catch {
    // The body was cut; `isWhole` says so.
  }
}

async function withTimeout({ answer, abort }: Sending, url: URL, timeoutMs: number): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(noAnswer(url, timeoutMs))
      abort()
    }, timeoutMs)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
    // After a timeout nobody awaits `answer`, and its rejection must not count as unhandled.
    answer.catch(() => undefined)
  }
}

function noAnswer(url: URL, timeoutMs: number): RejoinError {
  return new RejoinError(`${url.host} took the request and sent no answer within ${timeoutMs / 1000} s.`, {
    code: 'unreachable',
    retryable: true,
  })
}
