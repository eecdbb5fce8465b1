import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { RejoinError } from '@rejoin/protocol'
import type { Hub } from '../hub/hub.ts'
import { type Answer, rejection } from './answer.ts'
import { askedChannels } from './asked-channels.ts'
import { hubEndpoints } from './endpoints.ts'
import { hasGone } from './gone.ts'
import { answerTo, createNodeExchange, type NodeExchange, type NodeExchangeOptions } from './node-exchange.ts'
import { nodeHead } from './node-head.ts'
import type { AdapterOptions, SubscribeOptions } from './options.ts'
import { nothingHere, type Plan, type RequestHead, route, routeStream } from './route.ts'
import { inTurn } from './turn.ts'

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
  const adapter = { hub, options, exchange: createNodeExchange(hub, options) }
  return (request, reply) => {
    const channels = askedChannels(options, request.params, request)
    return answerWith(adapter, routeStream(hub, headOf(request, options), channels), request, reply)
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
  const adapter = { hub, options, exchange: createNodeExchange(hub, options) }
  return async (instance) => {
    instance.removeAllContentTypeParsers()
    instance.addContentTypeParser('*', (_request, _payload, done) => done(null))
    for (const path of hubEndpoints.flatMap((endpoint) => [`/${endpoint}`, `/${endpoint}/*`])) {
      instance.all(path, (request, reply) => {
        const plan = route(hub, { ...headOf(request, options), basePath: instance.prefix })
        return answerWith(adapter, plan ?? nothingHere, request, reply)
      })
    }
  }
}

/**
 * What fails is thrown, for the application's error handler. Answers and streams are sent by Fastify, so that its `onSend`
 * hooks have a say in their headers: they are where cookies are added.
 */
async function answerWith(
  adapter: Adapter,
  planned: Plan | Promise<Plan>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const plan = await planned
  if (plan.kind === 'failure') throw plan.error
  if (plan.kind === 'stream') {
    reply.headers(plan.headers)
    return reply.send(new LateStream(reply.raw, () => adapter.exchange(plan, request.raw, reply.raw)))
  }
  if (plan.kind === 'poll') await inTurn(request.raw, reply.raw)
  const answer = await answerOrRejection(adapter, plan, request, reply)
  if (hasGone(reply.raw)) return reply.hijack()
  reply.code(answer.status)
  reply.headers(answer.headers)
  if (answer.body.length < longBody) return reply.send(answer.body)
  // Sent by the hub, which bounds what nobody reads.
  const send = () => adapter.exchange({ kind: 'answer', answer }, request.raw, reply.raw)
  return reply.send(new LateStream(reply.raw, send, answer.body))
}

interface Adapter {
  readonly hub: Hub
  readonly options: NodeExchangeOptions
  readonly exchange: NodeExchange
}

// Shorter ones are the system's as soon as they are sent.
const longBody = 4096

async function answerOrRejection(
  { hub, options }: Adapter,
  plan: Exclude<Plan, { kind: 'stream' }>,
  { raw }: FastifyRequest,
  reply: FastifyReply,
): Promise<Answer> {
  try {
    return await answerTo(hub, plan, raw, reply.raw, options.maxBodyBytes)
  } catch (error) {
    hub.port.failed(error)
    return rejection(error)
  }
}

/**
 * To Fastify a stream that it may send. In the moment in which it would, its hooks are through and the headers set, and the
 * hub takes the response itself: piped through this, each write would be copied and framed for every reader.
 */
class LateStream extends Readable {
  readonly #response: ServerResponse
  readonly #begin: () => void
  readonly #body: string | undefined

  /** @param body - what a hook reads that wants to change it; left out where nothing may. */
  constructor(response: ServerResponse, begin: () => void, body?: string) {
    super()
    this.#response = response
    this.#begin = begin
    this.#body = body
  }

  override pipe<Destination extends NodeJS.WritableStream>(destination: Destination): Destination {
    if (destination !== (this.#response as NodeJS.WritableStream)) return super.pipe(destination)
    this.#begin()
    return destination
  }

  override _read(): void {
    if (this.#body !== undefined) {
      this.push(this.#body)
      this.push(null)
      return
    }
    const message =
      'A hook of Fastify wants to read a stream of the hub, to compress it for one. Leave text/event-stream out of it.'
    this.destroy(new RejoinError(message, { code: 'invalid-option' }))
  }
}

function headOf<Request extends FastifyRequest>(
  request: Request,
  { authorize, rateLimit }: AdapterOptions<[request: Request]>,
): RequestHead {
  return {
    ...nodeHead(request.raw),
    // More than the peer's own address is there only if Fastify believed what the peer said.
    peer: () => ({ ip: request.ip, trusted: (request.ips?.length ?? 0) > 1 }),
    authorize: authorize && (() => authorize(request)),
    rateLimit: rateLimit && ((subject) => rateLimit(subject, request)),
  }
}
