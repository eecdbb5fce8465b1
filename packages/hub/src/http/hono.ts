import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Hub } from '../hub/hub.ts'
import { askedChannels } from './asked-channels.ts'
import { createFetchExchange } from './fetch-exchange.ts'
import { fetchHead } from './fetch-head.ts'
import { pollFor } from './node-exchange.ts'
import { nodeAddress } from './node-head.ts'
import {
  type AdapterOptions,
  type BasePathOptions,
  defaultBudgetBytes,
  type ProxyOptions,
  type SubscribeOptions,
} from './options.ts'
import { peerOf } from './peer.ts'
import { streamTo } from './response-reader.ts'
import { type Plan, type RequestHead, route, routeStream } from './route.ts'
import { parseTarget } from './target.ts'
import { inTurn } from './turn.ts'

/** What is used of a context of Hono. */
export interface HonoContext {
  readonly req: { readonly raw: Request; param(): unknown }
  readonly res: Response
  /** The platform's own; `@hono/node-server` gives Node's request and response here. */
  readonly env: unknown
}

export type HonoHandlerOptions<Context extends HonoContext> = AdapterOptions<[context: Context]> &
  BasePathOptions &
  ProxyOptions

export type HonoSubscribeOptions<Context extends HonoContext> = SubscribeOptions<[context: Context]> & ProxyOptions

/**
 * Streams at a route of your own: `app.get('/events/:channel{.+}', subscribe(hub))`. The channel is what the pattern has
 * matched, unless the option `channels` says.
 */
export function subscribe<Context extends HonoContext = import('hono').Context>(
  hub: Hub,
  options: HonoSubscribeOptions<Context> = {},
): (context: Context) => Promise<Response> {
  const exchange = createHonoExchange(hub, options)
  return (context) => {
    const channels = askedChannels(options, context.req.param(), context)
    return exchange(routeStream(hub, headOf(context, options), channels), context)
  }
}

/**
 * All of the hub, streams, polls and publishing: `app.use(honoHandler(hub))`; below a path, `app.use('/api/*',
 * honoHandler(hub, { basePath: '/api' }))`. What is not the hub's goes on to the next handler.
 */
export function honoHandler<Context extends HonoContext = import('hono').Context>(
  hub: Hub,
  options: HonoHandlerOptions<Context> = {},
): (context: Context, next: () => Promise<void>) => Promise<Response | undefined> {
  const exchange = createHonoExchange(hub, options)
  const { basePath = '' } = options
  return async (context, next) => {
    const plan = route(hub, { ...headOf(context, options), basePath })
    if (plan) return exchange(plan, context)
    await next()
    return undefined
  }
}

/**
 * On Node, the bytes of a stream go to its response directly, as with every adapter there: through a `Response` each write
 * would be a dozen promises. The `Response` still is what Hono, its middleware and its server handle and send the head of.
 */
function createHonoExchange(hub: Hub, { sinkBudgetBytes = defaultBudgetBytes }: { sinkBudgetBytes?: number }) {
  const exchange = createFetchExchange(hub, { sinkBudgetBytes })

  return async (planned: Promise<Plan>, context: HonoContext): Promise<Response> => {
    const { req, env } = context
    const plan = await planned
    // Once it was looked at, Hono adds what middleware has set by `c.header` to the response that it is given.
    void context.res
    // For the application's `onError`.
    if (plan.kind === 'failure') throw plan.error
    const node = nodeOf(env)
    if (node && (plan.kind === 'stream' || plan.kind === 'poll')) await inTurn(node.incoming, node.outgoing)
    if (plan.kind === 'poll' && node) {
      return exchange({ kind: 'answer', answer: await pollFor(hub, plan, node.incoming, node.outgoing) }, req.raw)
    }
    if (plan.kind !== 'stream' || !node) return exchange(plan, req.raw)
    const { incoming, outgoing } = node
    const response = await exchange(plan, req.raw, (subscribe, onGone) => {
      if (!isSentAsItIs(outgoing)) return undefined
      streamTo(hub, subscribe, outgoing, { budgetBytes: sinkBudgetBytes, isHeadSent: true, onGone })
      return () => outgoing.end()
    })
    // Without it, `@hono/node-server` reads ahead before it sends the head, to find out how long the body is.
    if (incoming.httpVersion === '1.1') response.headers.set('Transfer-Encoding', 'chunked')
    return response
  }
}

/** Whether the head is out, and what follows is ours: nothing that stands in between reads the body to change it. */
function isSentAsItIs(outgoing: ServerResponse): boolean {
  return outgoing.headersSent && !outgoing.writableEnded && outgoing.getHeader('content-encoding') === undefined
}

function nodeOf(env: unknown): { incoming: IncomingMessage; outgoing: ServerResponse } | undefined {
  const { incoming, outgoing } = (env ?? {}) as { incoming?: IncomingMessage; outgoing?: ServerResponse }
  return incoming && outgoing ? { incoming, outgoing } : undefined
}

/** As the platforms tell it: Node by its request, Bun by its server, Deno by what it knows of the connection. */
function addressOf({ env, req }: HonoContext): string | undefined {
  const node = nodeOf(env)
  if (node) return nodeAddress(node.incoming)
  const { server, remoteAddr } = (env ?? {}) as { server?: BunServer; remoteAddr?: { hostname?: string } }
  // Bun gives its server as it is, or among other things, by how it was started.
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
  const head = { ...fetchHead(context.req.raw), ...asItCame(context.env) }
  const peer = () => peerOf(head, addressOf(context), trustProxy)
  return {
    ...head,
    peer,
    authorize: authorize && (() => authorize(context)),
    rateLimit: rateLimit && ((subject) => rateLimit(subject, context)),
  }
}

/**
 * A request's address is normalised by Hono's server on Node: `/events/r/../q` would be read as the channel `q`, which every
 * other adapter on Node rejects. Where Node's own request tells of such segments, its word counts.
 */
function asItCame(env: unknown): Partial<Pick<RequestHead, 'target'>> {
  const url = nodeOf(env)?.incoming.url
  return url !== undefined && dotSegment.test(url) ? { target: parseTarget(url) } : {}
}

// Also as browsers read it: with one or both dots encoded.
const dotSegment = /\/(?:\.|%2e){1,2}(?:[/?#]|$)/i
