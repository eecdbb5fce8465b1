import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Hub } from '../hub/hub.ts'
import type { Answer } from './answer.ts'
import { askedChannels } from './asked-channels.ts'
import { createFetchExchange, responseOf } from './fetch-exchange.ts'
import { type HubSource, isHubPath, unopened, unopenedStream, withHub } from './hub-source.ts'
import { pollFor } from './node-exchange.ts'
import {
  type AdapterOptions,
  type BasePathOptions,
  defaultBudgetBytes,
  type ProxyOptions,
  type SubscribeOptions,
} from './options.ts'
import { inTurn, isWithinBounds } from './pipelining.ts'
import { fetchHead, nodeAddress, peerOf, type RequestHead } from './request-head.ts'
import { streamTo } from './response-reader.ts'
import { type Plan, route, routeStream } from './route.ts'
import { parseTarget } from './target.ts'
import { discardBody } from './unwanted-body.ts'

/** The part of a Hono context that the adapter uses. */
export interface HonoContext {
  readonly req: { readonly raw: Request; param(): unknown }
  readonly res: Response
  /** An object of the platform. `@hono/node-server` puts Node's request and response here. */
  readonly env: unknown
}

export type HonoHandlerOptions<Context extends HonoContext> = AdapterOptions<[context: Context]> &
  BasePathOptions &
  ProxyOptions

export type HonoSubscribeOptions<Context extends HonoContext> = SubscribeOptions<[context: Context]> & ProxyOptions

/**
 * Streams at a route of your own: `app.get('/events/:channel{.+}', subscribe(hub))`. The text that the pattern matches is the
 * channel, unless the option `channels` names others.
 */
export function subscribe<Context extends HonoContext = import('hono').Context>(
  hub: HubSource,
  options: HonoSubscribeOptions<Context> = {},
): (context: Context) => Promise<Response> {
  return boundPipelining(
    withHub<(context: Context) => Promise<Response>>(
      hub,
      (hub) => {
        const exchange = createHonoExchange(hub, options)
        return (context) => {
          const channels = askedChannels(options, context.req.param(), context)
          return exchange(routeStream(hub, headOf(context, options), channels), context)
        }
      },
      { without: async (context) => responseIn(context, unopenedStream(plainHead(context))) },
    ),
  )
}

/**
 * The whole hub, with streams, polls and publishing: `app.use(honoHandler(hub))`; below a path, `app.use('/api/*',
 * honoHandler(hub, { basePath: '/api' }))`. Requests for other paths go to the next handler.
 */
export function honoHandler<Context extends HonoContext = import('hono').Context>(
  hub: HubSource,
  options: HonoHandlerOptions<Context> = {},
): (context: Context, next: () => Promise<void>) => Promise<Response | undefined> {
  const { basePath = '' } = options
  return boundPipelining(
    withHub<(context: Context, next: () => Promise<void>) => Promise<Response | undefined>>(
      hub,
      (hub) => {
        const exchange = createHonoExchange(hub, options)
        return async (context, next) => {
          const plan = route(hub, { ...headOf(context, options), basePath })
          if (plan) return exchange(plan, context)
          await next()
          return undefined
        }
      },
      {
        isForHub: (context) => isHubPath({ ...plainHead(context), basePath }),
        async without(context, next) {
          const answer = unopened({ ...plainHead(context), basePath })
          if (answer) return responseIn(context, answer)
          await next()
          return undefined
        },
      },
    ),
  )
}

/** A handler that, on Node, is for requests whose connection is within its bounds. The answer to another one goes nowhere. */
function boundPipelining<Call extends readonly [context: HonoContext, ...rest: unknown[]], Answered>(
  handler: (...call: Call) => Promise<Answered>,
): (...call: Call) => Promise<Answered | Response> {
  return async (...call) => {
    const node = nodeOf(call[0].env)
    return node && !isWithinBounds(node.incoming, node.outgoing) ? new Response() : handler(...call)
  }
}

function responseIn(context: HonoContext, answer: Answer): Response {
  keepHeaders(context)
  return responseOf(answer)
}

/** Once `context.res` was read, Hono adds the headers that middleware set by `c.header` to our response. */
function keepHeaders(context: HonoContext): void {
  void context.res
}

/**
 * On Node, the bytes of a stream go to Node's response directly: through a `Response`, each write would cost a dozen promises.
 * Hono, its middleware and its server still get a `Response`, and send its head.
 */
function createHonoExchange(
  hub: Hub,
  { sinkBudgetBytes = defaultBudgetBytes }: { sinkBudgetBytes?: number | undefined },
) {
  const exchange = createFetchExchange(hub, { sinkBudgetBytes })

  return async (planned: Promise<Plan>, context: HonoContext): Promise<Response> => {
    const { req, env } = context
    const node = nodeOf(env)
    if (node && node.incoming.method !== 'POST') discardBody(node.incoming)
    const plan = await planned
    keepHeaders(context)
    // For the application's `onError`.
    if (plan.kind === 'failure') throw plan.error
    if (node && plan.kind !== 'body') discardBody(node.incoming)
    if (node && (plan.kind === 'stream' || plan.kind === 'poll')) await inTurn(node.outgoing)
    if (plan.kind === 'poll' && node) {
      return exchange({ kind: 'answer', answer: await pollFor(hub, plan, node.incoming, node.outgoing) }, req.raw)
    }
    if (plan.kind !== 'stream' || !node) return exchange(plan, req.raw)
    const { incoming, outgoing } = node
    const response = await exchange(plan, req.raw, (reader, onGone) => {
      if (!isSentAsItIs(outgoing)) return undefined
      streamTo(hub, reader, outgoing, { budgetBytes: sinkBudgetBytes, onGone })
      return () => outgoing.end()
    })
    // Without this header, `@hono/node-server` reads ahead to learn the length of the body before it sends the head.
    if (incoming.httpVersion === '1.1') response.headers.set('Transfer-Encoding', 'chunked')
    return response
  }
}

/** Whether the head is out, and the body is sent unchanged: no middleware compresses it. */
function isSentAsItIs(outgoing: ServerResponse): boolean {
  return outgoing.headersSent && !outgoing.writableEnded && outgoing.getHeader('content-encoding') === undefined
}

function nodeOf(env: unknown): { incoming: IncomingMessage; outgoing: ServerResponse } | undefined {
  const { incoming, outgoing } = (env ?? {}) as { incoming?: IncomingMessage; outgoing?: ServerResponse }
  return incoming && outgoing ? { incoming, outgoing } : undefined
}

/** The address of the peer: on Node from its request, on Bun from its server, on Deno from its facts of the connection. */
function addressOf({ env, req }: HonoContext): string | undefined {
  const node = nodeOf(env)
  if (node) return nodeAddress(node.incoming)
  const { server, remoteAddr } = (env ?? {}) as { server?: BunServer; remoteAddr?: { hostname?: string } }
  // By how Bun was started, `env` is its server, or holds the server under `server`.
  const bun = server ?? (env as BunServer | undefined)
  return bun?.requestIP?.(req.raw)?.address ?? remoteAddr?.hostname
}

interface BunServer {
  requestIP?(request: Request): { readonly address: string } | null
}

function headOf<Context extends HonoContext>(
  context: Context,
  { authorize, rateLimit, trustProxy }: HonoSubscribeOptions<Context>,
): RequestHead {
  const head = plainHead(context)
  const peer = () => peerOf(head, addressOf(context), trustProxy)
  return {
    ...head,
    peer,
    authorize: authorize && (() => authorize(context)),
    rateLimit: rateLimit && ((subject) => rateLimit(subject, context)),
  }
}

function plainHead({ req, env }: HonoContext): Pick<RequestHead, 'method' | 'target' | 'header'> {
  return { ...fetchHead(req.raw), ...asItCame(env) }
}

/**
 * Hono's server on Node normalises the URL of a request: `/events/r/../q` would become the channel `q`. Every other adapter on
 * Node rejects such a path. So a URL with dot segments is read from Node's own request.
 */
function asItCame(env: unknown): Partial<Pick<RequestHead, 'target'>> {
  const url = nodeOf(env)?.incoming.url
  return url !== undefined && dotSegment.test(url) ? { target: parseTarget(url) } : {}
}

// URL parsers also take an encoded dot, %2e, for a dot.
const dotSegment = /\/(?:\.|%2e){1,2}(?:[/?#]|$)/i
