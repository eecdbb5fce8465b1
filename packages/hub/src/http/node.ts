import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { RejoinError } from '@rejoin/protocol'
import type { Grant } from '../hub/grant.ts'
import type { Hub } from '../hub/hub.ts'
import { type Answer, jsonAnswer, refusal } from './answer.ts'
import { createResponseSink } from './response-sink.ts'
import { type Plan, type RequestHead, route } from './route.ts'

export interface NodeHandlerOptions {
  /**
   * Says who sent a request and what they may do; null is answered with 401. Asked for every request, and again before a
   * reader that has fallen behind reads on. Left out, everybody may do everything.
   */
  authorize?: (request: IncomingMessage) => Grant | null | Promise<Grant | null>
  /**
   * Whether requests come through a proxy of yours, so that `X-Forwarded-For` and `X-Forwarded-Last-Event-Id` can be
   * believed. Set without such a proxy, any client can pretend to be another address.
   * @defaultValue false
   */
  trustProxy?: boolean
  /**
   * Bytes that may wait for one reader before it is considered slow, and is served from the log when it reads again. Also
   * what each slow reader costs in memory.
   * @defaultValue 65536
   */
  sinkBudgetBytes?: number
}

export type NodeHandler = (request: IncomingMessage, response: ServerResponse, next?: () => void) => void

/**
 * Serves a hub on Node's own HTTP server: `createServer(nodeHandler(hub))`. Paths that are not the hub's go to `next`, or
 * are answered with 404 when there is none.
 */
export function nodeHandler(hub: Hub, options: NodeHandlerOptions = {}): NodeHandler {
  const budgetBytes = options.sinkBudgetBytes ?? 64 * 1024
  return (request, response, next) => {
    const plan = route(hub, headOf(request, options))
    if (!plan && next) {
      next()
      return
    }
    // A reader that vanishes while it is written to is an everyday thing: 'close' follows and tells the session.
    response.on('error', () => response.destroy())
    if (plan) void plan.then((what) => carryOut(what, request, response))
    else send(response, notFound)
  }

  function carryOut(plan: Plan, request: IncomingMessage, response: ServerResponse): void {
    // Whoever left while their rights were looked up would be a session that nobody ever ends.
    if (response.destroyed || response.closed) return
    if (plan.kind === 'answer') send(response, plan.answer)
    else if (plan.kind === 'stream') stream(plan, request, response)
    else if (plan.kind === 'poll') void poll(plan, request, response)
    else void receive(plan, request).then((answer) => send(response, answer))
  }

  function stream(plan: Plan & { kind: 'stream' }, request: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, plan.headers)
    response.flushHeaders()
    const sink = createResponseSink(request, response, budgetBytes)
    const session = hub.subscribe(plan.subscribe, sink)
    const stopListening = sink.onDrain(() => session.drained())
    onceGone(request, response, () => {
      stopListening()
      session.disconnected()
    })
  }
}

async function poll(plan: Plan & { kind: 'poll' }, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const gone = new AbortController()
  onceGone(request, response, () => gone.abort())
  const answer = await plan.answer(gone.signal)
  if (!gone.signal.aborted) send(response, answer)
}

/** Calls `cleanUp` once when the reader has gone. */
function onceGone({ socket }: IncomingMessage, response: ServerResponse, cleanUp: () => void): void {
  if (response.socket) response.once('close', cleanUp)
  else onceQueuedGone(socket, response, cleanUp)
}

/** A response that waits behind another on the same socket has no socket yet, and is never told that it went. */
function onceQueuedGone(socket: Socket, response: ServerResponse, cleanUp: () => void): void {
  let onSocket = cleanUps.get(socket)
  if (!onSocket) {
    const waiting = new Set<() => void>()
    onSocket = waiting
    cleanUps.set(socket, waiting)
    // One listener, however many requests one socket carries.
    socket.once('close', () => {
      for (const each of waiting) each()
    })
  }
  const listed = onSocket
  const gone = () => {
    if (listed.delete(gone)) cleanUp()
  }
  listed.add(gone)
  response.once('close', gone)
}

const cleanUps = new WeakMap<Socket, Set<() => void>>()

function headOf(request: IncomingMessage, { authorize, trustProxy = false }: NodeHandlerOptions): RequestHead {
  const header = (name: string) => {
    const value = request.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }
  const forwarded = trustProxy ? header('x-forwarded-for')?.split(',').at(-1)?.trim() : undefined
  return {
    method: request.method ?? 'GET',
    url: request.url ?? '/',
    header,
    ip: forwarded ?? request.socket.remoteAddress ?? null,
    trusted: trustProxy,
    ...(authorize ? { authorize: () => authorize(request) } : {}),
  }
}

const notFound = jsonAnswer(404, {
  error: { code: 'not-found', message: 'Nothing is here. Read /events/<channel>, or POST to /publish/<channel>.' },
})

function send(response: ServerResponse, { status, headers, body }: Answer): void {
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) })
  response.end(body)
}

async function receive({ maxBytes, accept }: Plan & { kind: 'body' }, request: IncomingMessage): Promise<Answer> {
  try {
    return await accept(await readBody(request, maxBytes))
  } catch (error) {
    // The rest of a refused body is read and thrown away, or it would block the next request on this connection.
    request.resume()
    return refusal(error)
  }
}

/** By its events: an async iterator over the request would make a publish over HTTP 14 % slower (`bench -- publish`). */
function readBody(request: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let length = 0
    const take = (part: Buffer) => {
      length += part.length
      if (length <= maxBytes) parts.push(part)
      else refuse()
    }
    const refuse = () => {
      request.off('data', take)
      reject(
        new RejoinError(`The body is over ${maxBytes} bytes. Publish a reference to large data instead.`, {
          code: 'too-large',
        }),
      )
    }
    request.once('end', () => resolve(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, length)))
    request.once('error', reject)
    if (Number(request.headers['content-length']) > maxBytes) refuse()
    else request.on('data', take)
  })
}
