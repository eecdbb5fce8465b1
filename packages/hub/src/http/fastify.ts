import type { IncomingMessage, OutgoingHttpHeader, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { RejoinError } from '@rejoin/protocol'
import type { Hub } from '../hub/hub.ts'
import { askedChannels } from './asked-channels.ts'
import { createNodeExchange, type NodeExchange } from './node-exchange.ts'
import { nodeHead } from './node-head.ts'
import type { AdapterOptions, SubscribeOptions } from './options.ts'
import { doors, nothingHere, type Plan, type RequestHead, route, routeStream } from './route.ts'

/** What is used of a request of Fastify. */
export interface FastifyRequest {
  readonly raw: IncomingMessage
  readonly params: unknown
  /** By the application's `trustProxy`, and so is `ips`, which is left out without it. */
  readonly ip?: string | undefined
  readonly ips?: readonly string[] | undefined
}

/** What is used of a reply of Fastify. */
export interface FastifyReply {
  readonly raw: ServerResponse
  code(status: number): unknown
  headers(values: Readonly<Record<string, string>>): unknown
  getHeaders(): Record<string, OutgoingHttpHeader | undefined>
  send(payload: unknown): unknown
  hijack(): unknown
}

export type FastifyHandler<Request extends FastifyRequest> = (request: Request, reply: FastifyReply) => Promise<unknown>

/** What is used of an instance of Fastify. */
export interface FastifyInstance<Request extends FastifyRequest> {
  readonly prefix: string
  all(path: string, handler: FastifyHandler<Request>): unknown
  removeAllContentTypeParsers(): unknown
  addContentTypeParser(
    type: string,
    parse: (request: Request, payload: IncomingMessage, done: (error: null) => void) => void,
  ): unknown
}

/**
 * Streams at a route of your own: `app.get('/events/*', subscribe(hub))`. The channel is what the wildcard has matched,
 * unless the option `channels` says.
 */
export function subscribe<Request extends FastifyRequest = import('fastify').FastifyRequest>(
  hub: Hub,
  options: SubscribeOptions<[request: Request]> = {},
): FastifyHandler<Request> {
  const exchange = createNodeExchange(hub, options)
  return (request, reply) => {
    const channels = askedChannels(options, request.params, request)
    return answerWith(exchange, routeStream(hub, headOf(request, options), channels), request, reply)
  }
}

/**
 * All of the hub, streams, polls and publishing, as a plugin: `app.register(fastifyPlugin(hub), { prefix: '/api' })`. It
 * reads the bodies of publishes itself; the parsers of the application are its own scope's, and stay as they are.
 */
export function fastifyPlugin<Request extends FastifyRequest = import('fastify').FastifyRequest>(
  hub: Hub,
  options: AdapterOptions<[request: Request]> = {},
): (instance: FastifyInstance<Request>) => Promise<void> {
  const exchange = createNodeExchange(hub, options)
  return async (instance) => {
    instance.removeAllContentTypeParsers()
    instance.addContentTypeParser('*', (_request, _payload, done) => done(null))
    for (const path of doors.flatMap((door) => [`/${door}`, `/${door}/*`])) {
      instance.all(path, (request, reply) => {
        const plan = route(hub, { ...headOf(request, options), basePath: instance.prefix })
        return answerWith(exchange, plan ?? nothingHere, request, reply)
      })
    }
  }
}

/**
 * What fails is thrown, for the application's error handler. Answers and streams are sent by Fastify, so that its `onSend`
 * hooks have a say in their headers: they are where cookies are added.
 */
async function answerWith(
  exchange: NodeExchange,
  planned: Plan | Promise<Plan>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const plan = await planned
  if (plan.kind === 'failure') throw plan.error
  if (plan.kind === 'answer') {
    reply.code(plan.answer.status)
    reply.headers(plan.answer.headers)
    return reply.send(plan.answer.body)
  }
  if (plan.kind === 'stream') {
    reply.headers(plan.headers)
    return reply.send(new LateStream(() => exchange(plan, request.raw, reply.raw)))
  }
  // Their answers are not known yet, and are sent past Fastify when they are, with the headers that hooks have set by now.
  reply.hijack()
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(name, value)
  }
  exchange(plan, request.raw, reply.raw)
  return reply
}

/**
 * To Fastify a stream that it may send. In the moment in which it would, its hooks are through and the headers set, and the
 * hub takes the response itself: piped through this, each write would be copied and framed for every reader.
 */
class LateStream extends Readable {
  readonly #begin: () => void

  constructor(begin: () => void) {
    super()
    this.#begin = begin
  }

  override pipe<Destination extends NodeJS.WritableStream>(destination: Destination): Destination {
    this.#begin()
    return destination
  }

  override _read(): void {
    const message =
      'A hook of Fastify wants to read a stream of the hub, to compress it for one. Leave text/event-stream out of it.'
    this.destroy(new RejoinError(message, { code: 'invalid-option' }))
  }
}

function headOf<Request extends FastifyRequest>(
  request: Request,
  { authorize }: AdapterOptions<[request: Request]>,
): RequestHead {
  return {
    ...nodeHead(request.raw),
    // More than the peer's own address is there only if Fastify believed what the peer said.
    peer: () => ({ ip: request.ip, trusted: (request.ips?.length ?? 0) > 1 }),
    authorize: authorize && (() => authorize(request)),
  }
}
