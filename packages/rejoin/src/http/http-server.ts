import { createServer as createHttpServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createSecureServer, type ServerHttp2Session } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import type { Server, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Server as TlsServer } from 'node:tls'
import { readerRoom } from '../limits/descriptors.ts'
import { limitSession } from '../limits/http2-session.ts'
import type { Rejection, RequestLimits } from '../limits/options.ts'
import { limitPipelined } from '../limits/pipelined.ts'
import { limitSilent } from '../limits/silent-sockets.ts'
import type { Pem } from './tls/certificate.ts'

/** Node's HTTP server of the kind that is asked for, with the deadlines that Node leaves generous. */
export function createServer(options: HttpServerOptions, listener: RequestListener): HttpServer {
  const { headersTimeoutMs = 10_000, requestTimeoutMs = 30_000, maxSilentPerIp = 1000, maxSockets, onReject } = options
  const deadlines = {
    headersTimeout: Math.min(headersTimeoutMs, requestTimeoutMs),
    requestTimeout: requestTimeoutMs,
    // Node's own 5 s, which its server for HTTP/2 does without: whoever had asked once could stay for ever.
    keepAliveTimeout: Math.min(5000, headersTimeoutMs),
    // Node looks for both only this often, by default every 30 s; a deadline is late by as much.
    connectionsCheckingInterval: Math.min(5000, Math.ceil(headersTimeoutMs / 2)),
  }
  const silent = limitSilent({ max: maxSilentPerIp, isTls: options.tls !== undefined, onReject })
  const isInTurn = limitPipelined(onReject)
  const server = create(options, deadlines, (request, response) => {
    silent.asked(request.socket)
    if (isInTurn(request, response)) listener(request, response)
  })
  const sockets = new Set<Socket>()
  const sessions = new Set<ServerHttp2Session>()

  // One function for all sockets: a new one for each would be memory for as long as a stream is open.
  function forget(this: Socket): void {
    sockets.delete(this)
    silent.closed(this)
  }

  const isCrowded = () => maxSockets !== undefined && sockets.size > readerRoom(maxSockets)
  if (maxSockets !== undefined) server.maxConnections = maxSockets
  server.on('drop', () => onReject('sockets'))
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    silent.opened(socket)
    socket.on('close', forget)
  })
  server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    limitSession(session, { headersTimeoutMs, requestTimeoutMs, isCrowded, onReject })
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => answerUnreadable(error, socket, onReject))
  // Whoever fails in the middle of a handshake is not a client yet.
  server.on('tlsClientError', (_error, socket: Duplex) => socket.destroy())

  return {
    server,
    renew: (pem) => 'setSecureContext' in server && (server as TlsServer).setSecureContext(pem),
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      if ('closeIdleConnections' in server) (server as { closeIdleConnections(): void }).closeIdleConnections()
      for (const session of sessions) session.close()
      // Browsers and pools open connections ahead of need; one that never asked is no idle one to Node.
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
      // Readers that do not take their last bytes must not hold up the end.
      const deadline = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, closeTimeoutMs)
      await closed
      clearTimeout(deadline)
    },
  }
}

export interface HttpServerOptions
  extends Pick<RequestLimits, 'headersTimeoutMs' | 'requestTimeoutMs' | 'maxSilentPerIp'> {
  /** Serves TLS with this certificate; left out, it does not. */
  readonly tls?: Pem & { readonly http2: boolean }
  /** Connections that may be open at once; more are closed unheard. Left out, as many as the system bears. */
  readonly maxSockets?: number | undefined
  onReject(kind: Rejection): void
}

export interface HttpServer {
  readonly server: Server
  /** New connections get this certificate. Those that are open stay as they are. */
  renew(pem: Pem): void
  /** Resolves when no connection is left. Those that are in use have a while to end. */
  close(): Promise<void>
}

const closeTimeoutMs = 2000
// As long as Node gives a request to come; its own 120 s are for connections too slow to read a stream.
const handshakeTimeout = 10_000
// A page has a few streams; a hundred tabs of it share one connection.
const maxConcurrentStreams = 256

interface Deadlines {
  headersTimeout: number
  requestTimeout: number
  keepAliveTimeout: number
  connectionsCheckingInterval: number
}

function create({ tls }: HttpServerOptions, deadlines: Deadlines, listener: RequestListener): Server {
  if (!tls) return createHttpServer(deadlines, listener)
  const { cert, key } = tls
  const secured = { cert, key, minVersion: 'TLSv1.2' as const, handshakeTimeout }
  if (!tls.http2) return createHttpsServer({ ...deadlines, ...secured }, listener)
  const server = createSecureServer({ ...secured, allowHTTP1: true, settings: { maxConcurrentStreams } })
  // For those of its clients that speak HTTP/1. It takes them from itself, not from its options.
  Object.assign(server, deadlines)
  return server.on('request', (request, response) => {
    // What HTTP/1 calls `Host` has a name of its own in HTTP/2, and everything behind us looks for the old one.
    if (request.httpVersionMajor === 2) request.headers.host ??= request.authority
    listener(request as unknown as IncomingMessage, response as never)
  })
}

/** As Node does by itself, where nobody counts. */
function answerUnreadable(error: NodeJS.ErrnoException, socket: Duplex, onReject: (kind: Rejection) => void): void {
  const kind = kindOf(error.code)
  if (kind) onReject(kind)
  const inAnswer = (socket as { _httpMessage?: { _headerSent?: boolean } })._httpMessage?._headerSent
  if (socket.writable && kind && !inAnswer) socket.write(`HTTP/1.1 ${statusLines[kind]}\r\nConnection: close\r\n\r\n`)
  socket.destroy()
}

/** Undefined for a client that is simply gone. */
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
