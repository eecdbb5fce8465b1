import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { createSecureServer, type ServerHttp2Session } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { Server as NetServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Server as TlsServer } from 'node:tls'
import { boundRequests, discardBody, inLaterTurn } from '@rejoin/hub/internal'
import { limitFirstRequests } from '../limits/first-requests.ts'
import { limitSession } from '../limits/http2-session.ts'
import type { Rejection, RequestLimits } from '../limits/options.ts'
import { evictionRoom, readerRoom } from '../limits/reader-room.ts'
import { limitSilent, limitSockets } from '../limits/sockets.ts'
import type { Pem } from './certificate.ts'

/** Node's server for HTTP/1 or HTTP/2, with or without TLS. Its deadlines are shorter than Node's generous defaults. */
export function createServer(options: HttpServerOptions, listener: RequestListener): HttpServer {
  const { headersTimeoutMs = 10_000, requestTimeoutMs = 30_000, maxSilentPerIp = 1000, maxSockets, onReject } = options
  const { isBehindProxy = false } = options
  const { maxSocketsPerIp = Math.ceil((maxSockets ?? Number.POSITIVE_INFINITY) * 0.75) } = options
  const deadlines = {
    headersTimeout: Math.min(headersTimeoutMs, requestTimeoutMs),
    requestTimeout: requestTimeoutMs,
    // Node's own default is 5 s. Its HTTP/2 server has none: a client could stay for ever after one request.
    keepAliveTimeout: isBehindProxy ? proxiedIdleMs : Math.min(5000, headersTimeoutMs),
    // Node checks the deadlines only this often, by default every 30 s. A deadline can be late by this much.
    connectionsCheckingInterval: Math.min(5000, Math.ceil(headersTimeoutMs / 2)),
  }
  const isTls = options.tls !== undefined
  const silent = limitSilent({ max: maxSilentPerIp, isTls, onReject })
  // Behind a proxy every connection has the address of the proxy, and tells nothing of who is busy.
  const hasNoAddresses = maxSocketsPerIp === Number.POSITIVE_INFINITY
  const room = hasNoAddresses || maxSockets === undefined ? Number.POSITIVE_INFINITY : evictionRoom(maxSockets)
  const open = limitSockets({ maxPerIp: maxSocketsPerIp, room, isTls, onReject })
  const firstRequests = limitFirstRequests(silent, deadlines.headersTimeout / 4)
  const server = create(options, deadlines, (request, response) => {
    // A connection that was just reset for its many requests.
    if (request.httpVersionMajor === 1 && request.socket.destroyed) return
    // Over TLS, this socket is not the one that Node reads, so pausing it would stop nothing.
    if (silent.asked(request.socket) && !isTls) firstRequests.asked()
    open.asked(request, response)
    if (request.method !== 'POST') discardBody(request)
    if (isStopping) {
      // HTTP/2 has no such header: its sessions are told when the server closes.
      if (request.httpVersionMajor === 1) response.setHeader('Connection', 'close')
      if (request.method !== 'GET') unrepeatable.begin(response)
    }
    listener(request, response)
  })
  boundRequests(server, () => onReject('pipelined'))
  let isStopping = false
  const unrepeatable = countOpen()
  const sockets = new Set<Socket>()
  const sessions = new Set<ServerHttp2Session>()

  // One function for all sockets: a closure for each would take memory for as long as a stream is open.
  function forget(this: Socket): void {
    sockets.delete(this)
    silent.closed(this)
    open.closed(this)
  }

  /**
   * Closes each connection on which nothing has arrived since `before`, right after a poll for bytes. With many connections, or a
   * process that gets no turn meanwhile, a publish could arrive on the last one while the first one is closed.
   */
  async function closeSilent(before: Map<Socket, number>): Promise<void> {
    const limit = performance.now() + longestQuietMs
    // GOAWAY says which requests were read. A client may repeat the others.
    for (const session of [...sessions]) {
      await quietTurn(limit)
      session.close()
    }
    for (const [socket, bytesRead] of before) {
      if (socket.destroyed) continue
      await quietTurn(limit)
      if (socket.bytesRead === bytesRead && open.isIdle(socket)) socket.destroy()
    }
    do await quietTurn(limit)
    while (unrepeatable.open() > 0 && performance.now() < limit)
  }

  function closeIdle(): void {
    if ('closeIdleConnections' in server) (server as { closeIdleConnections(): void }).closeIdleConnections()
    // Browsers and pools open connections in advance. Node does not count a connection without a request as idle.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
  }

  const isCrowded = () => maxSockets !== undefined && sockets.size > readerRoom(maxSockets)
  if (maxSockets !== undefined) server.maxConnections = maxSockets
  server.on('drop', () => onReject('sockets'))
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    silent.opened(socket)
    socket.on('close', forget)
    open.opened(socket)
  })
  server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    limitSession(session, { headersTimeoutMs, requestTimeoutMs, isCrowded, onReject })
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => answerUnreadable(error, socket, onReject))
  // A client that fails in the handshake has sent no request to answer.
  server.on('tlsClientError', (_error, socket: Duplex) => socket.destroy())

  return {
    server,
    renew: (pem) => 'setSecureContext' in server && (server as TlsServer).setSecureContext(pem),
    async linger(ms) {
      isStopping = true
      await quietTurn()
      // Not the method of the HTTP server, which also ends the idle connections.
      const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()))
      const before = new Map([...sockets].map((socket) => [socket, socket.bytesRead]))
      let timer: NodeJS.Timeout | undefined
      const passed = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, ms)
      })
      await Promise.race([closed, passed])
      clearTimeout(timer)
      await quietTime(unrepeatable)
      await closeSilent(before)
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      closeIdle()
      for (const session of sessions) session.close()
      // Readers that do not take their last bytes must not delay the end.
      const deadline = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, closeTimeoutMs)
      await closed
      clearTimeout(deadline)
    },
  }
}

export interface HttpServerOptions
  extends Pick<RequestLimits, 'headersTimeoutMs' | 'requestTimeoutMs' | 'maxSilentPerIp' | 'maxSocketsPerIp'> {
  /** Serves TLS with this certificate; left out, plain HTTP. */
  readonly tls?: Pem & { readonly http2: boolean }
  /** Connections that may be open at once. Further connections are closed before they are read. Left out, there is no limit. */
  readonly maxSockets?: number | undefined
  /**
   * Whether all connections come from a proxy. Then the proxy closes idle connections.
   * @defaultValue false: the server closes them after 5 s
   */
  readonly isBehindProxy?: boolean
  onReject(kind: Rejection): void
}

export interface HttpServer {
  readonly server: Server
  /** Gives this certificate to new connections. Open connections keep the old one. */
  renew(pem: Pem): void
  /**
   * Stops listening, and answers on open connections for this long. Each answer ends its connection, so that a proxy does not use
   * it again. Then closes idle connections, when it has read and answered what had arrived on them. Resolves earlier when no
   * connection is left.
   */
  linger(ms: number): Promise<void>
  /** Resolves when no connection is left. Connections in use have two seconds to end. */
  close(): Promise<void>
}

const closeTimeoutMs = 2000
// Longer than proxies keep a connection: Google's load balancer 600 s, Caddy 120 s, nginx, Varnish and AWS 60 s. When the server
// is the first to close, a publish that the proxy sends at this moment fails with 502, because a proxy may not repeat it.
const proxiedIdleMs = 620_000
// As long as the head of a request may take. Node's default of 120 s suits only connections too slow to read a stream.
const handshakeTimeout = 10_000
// A page has a few streams, and a hundred tabs of it share one connection.
const maxConcurrentStreams = 256

/**
 * Resolves right after the event loop has polled: it has accepted every connection that waited and read what had arrived, in a turn
 * without other work. The system resets a connection that waits when listening ends, or that has unread bytes when it is closed, and
 * a proxy may not repeat a publish that it has sent on one of them. A long turn proves nothing: the process may have been stalled
 * between the poll and this moment.
 */
async function quietTurn(limit = Number.POSITIVE_INFINITY): Promise<void> {
  for (let turn = 0; turn < mostTurns; turn += 1) {
    const since = performance.now()
    await new Promise(setImmediate)
    const now = performance.now()
    if (now - since < quietTurnMs || now > limit) return
  }
}

/**
 * Resolves when nothing that a proxy may not repeat has arrived or been open for a while. A machine that is busy may not have let
 * this process read for as long as it lingered, so turns of the event loop count, and not only time.
 */
async function quietTime({ open, begun }: OpenCount): Promise<void> {
  const limit = performance.now() + longestQuietMs
  let [since, seen] = [performance.now(), begun()]
  for (let turn = 0; turn < quietTurns || performance.now() < limit; turn += 1) {
    await quietTurn(limit)
    if (open() > 0 || begun() !== seen) [since, seen] = [performance.now(), begun()]
    else if (turn >= quietTurns && performance.now() - since > quietMs) return
  }
}

interface OpenCount {
  begin(response: ServerResponse): void
  /** How many are open now. */
  open(): number
  /** How many there were in all. */
  begun(): number
}

function countOpen(): OpenCount {
  let [open, begun] = [0, 0]
  return {
    begin(response) {
      open += 1
      begun += 1
      response.once('close', () => {
        open -= 1
      })
    },
    open: () => open,
    begun: () => begun,
  }
}

const quietMs = 50
const quietTurns = 20
const longestQuietMs = 1000
const quietTurnMs = 0.3
// A busy server has to stop too.
const mostTurns = 200

interface Deadlines {
  headersTimeout: number
  requestTimeout: number
  keepAliveTimeout: number
  connectionsCheckingInterval: number
}

function create({ tls, onReject }: HttpServerOptions, deadlines: Deadlines, listener: RequestListener): Server {
  if (!tls) return createHttpServer(deadlines, listener)
  const { cert, key } = tls
  const secured = { cert, key, minVersion: 'TLSv1.2' as const, handshakeTimeout }
  if (!tls.http2) return createHttpsServer({ ...deadlines, ...secured }, listener)
  const server = createSecureServer({ ...secured, allowHTTP1: true, settings: { maxConcurrentStreams } })
  // For clients that speak HTTP/1: an HTTP/2 server reads their deadlines from its own properties, not from its options.
  Object.assign(server, deadlines)
  const onReset = () => onReject('resets')
  return server.on('request', (compatible, response: unknown) => {
    const request = compatible as unknown as IncomingMessage
    const serve = () => {
      // HTTP/2 has `:authority` instead of `Host`, and all code behind this server reads `Host`.
      request.headers.host ??= compatible.authority
      listener(request, response as never)
    }
    inLaterTurn(request, response as ServerResponse, serve, onReset)
  })
}

/** Answers an unreadable request as Node would by itself, and counts the rejection. */
function answerUnreadable(error: NodeJS.ErrnoException, socket: Duplex, onReject: (kind: Rejection) => void): void {
  const kind = kindOf(error.code)
  if (kind) onReject(kind)
  const inAnswer = (socket as { _httpMessage?: { _headerSent?: boolean } })._httpMessage?._headerSent
  if (socket.writable && kind && !inAnswer) socket.write(`HTTP/1.1 ${statusLines[kind]}\r\nConnection: close\r\n\r\n`)
  socket.destroy()
}

/** The kind of rejection; undefined for a client that has simply gone. */
function kindOf(code = ''): keyof typeof statusLines | undefined {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'deadline'
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers'
  return code.startsWith('HPE_') ? 'malformed' : undefined
}

const statusLines = {
  deadline: '408 Request Timeout',
  headers: '431 Request Header Fields Too Large',
  malformed: '400 Bad Request',
}
