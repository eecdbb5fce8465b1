import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { Hub } from '../hub/hub.ts'
import { invalidOption } from '../invalid-option.ts'
import { type Answer, rejection } from './answer.ts'
import { askedChannels } from './asked-channels.ts'
import { hasGone } from './connection.ts'
import { hubEndpoints } from './endpoints.ts'
import { type HubSource, unopened, unopenedStream, withHub } from './hub-source.ts'
import {
  answerTo,
  createNodeExchange,
  type NodeExchange,
  type NodeExchangeOptions,
  whilePlanned,
} from './node-exchange.ts'
import type { AdapterOptions, SubscribeOptions } from './options.ts'
import { inTurn, isWithinBounds } from './pipelining.ts'
import { nodeHead, type RequestHead } from './request-head.ts'
import { nothingHere, type Plan, route, routeStream } from './route.ts'
import { discardBody } from './unwanted-body.ts'

/** The part of a Fastify request that the adapter uses. */
export interface FastifyRequest {
  readonly raw: IncomingMessage
  readonly params: unknown
  /** The client's address, by the application's `trustProxy`. Without `trustProxy`, Fastify leaves `ips` out. */
  readonly ip?: string | undefined
  readonly ips?: readonly string[] | undefined
}

/** The part of a Fastify reply that the adapter uses. */
export interface FastifyReply {
  readonly raw: ServerResponse
  code(status: number): unknown
  headers(values: Readonly<Record<string, string>>): unknown
  send(payload: unknown): unknown
  hijack(): unknown
}

export type FastifyHandler<Request extends FastifyRequest> = (request: Request, reply: FastifyReply) => Promise<unknown>

/** The part of a Fastify instance that the adapter uses. */
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
 * Streams at a route of your own: `app.get('/events/*', subscribe(hub))`. The text that the wildcard matches is the channel,
 * unless the option `channels` names others.
 */
export function subscribe<Request extends FastifyRequest = import('fastify').FastifyRequest>(
  hub: HubSource,
  options: SubscribeOptions<[request: Request]> = {},
): FastifyHandler<Request> {
  return boundPipelining(
    withHub<FastifyHandler<Request>>(
      hub,
      (hub) => {
        const adapter = { hub, options, exchange: createNodeExchange(hub, options) }
        return (request, reply) => {
          const channels = askedChannels(options, request.params, request)
          return answerWith(adapter, routeStream(hub, headOf(request, options), channels), request, reply)
        }
      },
      { without: async ({ raw }, reply) => sendBy(reply, unopenedStream(nodeHead(raw))) },
    ),
  )
}

/** A handler for requests whose connection is within its bounds. For another one, Fastify is told to expect no answer. */
function boundPipelining<Request extends FastifyRequest>(handler: FastifyHandler<Request>): FastifyHandler<Request> {
  return async (request, reply) => (isWithinBounds(request.raw, reply.raw) ? handler(request, reply) : reply.hijack())
}

function sendBy(reply: FastifyReply, { status, headers, body }: Answer): unknown {
  reply.code(status)
  reply.headers(headers)
  return reply.send(body)
}

/**
 * The whole hub, with streams, polls and publishing, as a plugin: `app.register(fastifyPlugin(hub), { prefix: '/api' })`. The
 * plugin reads the bodies of publishes itself. It removes body parsers in its own scope only: the application keeps its parsers.
 */
export function fastifyPlugin<Request extends FastifyRequest = import('fastify').FastifyRequest>(
  hub: HubSource,
  options: AdapterOptions<[request: Request]> = {},
): (instance: FastifyInstance<Request>) => Promise<void> {
  return async (instance) => {
    const { prefix: basePath } = instance
    const handler = boundPipelining(
      withHub<FastifyHandler<Request>>(
        hub,
        (hub) => {
          const adapter = { hub, options, exchange: createNodeExchange(hub, options) }
          return (request, reply) => {
            const plan = route(hub, { ...headOf(request, options), basePath })
            return answerWith(adapter, plan ?? nothingHere, request, reply)
          }
        },
        {
          without: async ({ raw }, reply) =>
            sendBy(reply, unopened({ ...nodeHead(raw), basePath }) ?? nothingHere.answer),
        },
      ),
    )
    instance.removeAllContentTypeParsers()
    instance.addContentTypeParser('*', (_request, _payload, done) => done(null))
    for (const path of hubEndpoints.flatMap((endpoint) => [`/${endpoint}`, `/${endpoint}/*`])) {
      instance.all(path, handler)
    }
  }
}

/**
 * Throws a failure, for the application's error handler. Fastify sends answers and streams, so that its `onSend` hooks can
 * change their headers: cookies are added there.
 */
async function answerWith(
  adapter: Adapter,
  planned: Plan | Promise<Plan>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const plan = await whilePlanned(planned, request.raw)
  if (plan.kind === 'failure') throw plan.error
  if (plan.kind === 'stream') {
    reply.headers(plan.headers)
    return reply.send(new LateStream(reply.raw, () => adapter.exchange(plan, request.raw, reply.raw)))
  }
  if (plan.kind === 'poll') await inTurn(reply.raw)
  if (plan.kind === 'answer') discardBody(request.raw)
  const answer = await answerOrRejection(adapter, plan, request, reply)
  if (hasGone(reply.raw)) return reply.hijack()
  if (answer.body.length < longBody) return sendBy(reply, answer)
  reply.code(answer.status)
  reply.headers(answer.headers)
  // The hub sends a long answer itself, because it bounds the bytes of answers that nobody reads.
  const send = () => adapter.exchange({ kind: 'answer', answer }, request.raw, reply.raw)
  return reply.send(new LateStream(reply.raw, send, answer.body))
}

interface Adapter {
  readonly hub: Hub
  readonly options: NodeExchangeOptions
  readonly exchange: NodeExchange
}

// The system's own buffer takes a shorter body as soon as it is sent.
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
 * A stream for Fastify to send. When Fastify pipes it, all hooks have run and the headers are set. The hub then writes to the
 * response itself: piped through this stream, each write would be copied and framed for every reader.
 */
class LateStream extends Readable {
  readonly #response: ServerResponse
  readonly #begin: () => void
  readonly #body: string | undefined

  /** @param body - the text for a hook that reads and changes the body; left out for a stream, which no hook may change. */
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
    const message = "A Fastify hook, such as compression, reads the hub's stream. Exclude text/event-stream from it."
    this.destroy(invalidOption(message))
  }
}

function headOf<Request extends FastifyRequest>(
  request: Request,
  { authorize, rateLimit }: AdapterOptions<[request: Request]>,
): RequestHead {
  return {
    ...nodeHead(request.raw),
    // Fastify lists more than the peer's own address only if it trusts the peer.
    peer: () => ({ ip: request.ip, trusted: (request.ips?.length ?? 0) > 1 }),
    authorize: authorize && (() => authorize(request)),
    rateLimit: rateLimit && ((subject) => rateLimit(subject, request)),
  }
}
