import type { IncomingMessage, OutgoingHttpHeader, ServerResponse } from 'node:http'
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
  readonly ip: string
  readonly ips?: readonly string[] | undefined
}

/** What is used of a reply of Fastify. */
export interface FastifyReply {
  readonly raw: ServerResponse
  hijack(): unknown
  getHeaders(): Record<string, OutgoingHttpHeader | undefined>
}

export type FastifyHandler<Request extends FastifyRequest> = (request: Request, reply: FastifyReply) => void

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
export function subscribe<Request extends FastifyRequest = FastifyRequest>(
  hub: Hub,
  options: SubscribeOptions<[request: Request]> = {},
): FastifyHandler<Request> {
  const exchange = createNodeExchange(hub, options)
  return (request, reply) => {
    const channels = askedChannels(options, request.params, request)
    answerWith(exchange, routeStream(hub, headOf(request, options), channels), request, reply)
  }
}

/**
 * All of the hub, streams, polls and publishing, as a plugin: `app.register(fastifyPlugin(hub), { prefix: '/api' })`. It
 * reads the bodies of publishes itself; the parsers of the application are its own scope's, and stay as they are.
 */
export function fastifyPlugin<Request extends FastifyRequest = FastifyRequest>(
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
        answerWith(exchange, plan ?? nothingHere, request, reply)
      })
    }
  }
}

/** Past Fastify, which would collect a stream before it sent it; with the headers that its hooks have set, as CORS does. */
function answerWith(exchange: NodeExchange, plan: Plan | Promise<Plan>, request: FastifyRequest, reply: FastifyReply) {
  reply.hijack()
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(name, value)
  }
  exchange(plan, request.raw, reply.raw)
}

function headOf<Request extends FastifyRequest>(
  request: Request,
  { authorize }: AdapterOptions<[request: Request]>,
): RequestHead {
  return {
    ...nodeHead(request.raw),
    ip: request.ip,
    // More than the peer's own address is there only if Fastify believed what the peer said.
    trusted: (request.ips?.length ?? 0) > 1,
    authorize: authorize && (() => authorize(request)),
  }
}
