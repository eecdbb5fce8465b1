import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Hub } from '../hub/hub.ts'
import { askedChannels } from './asked-channels.ts'
import { createFetchExchange } from './fetch-exchange.ts'
import { fetchHead } from './fetch-head.ts'
import { createNodeExchange } from './node-exchange.ts'
import type { AdapterOptions, BasePathOptions, ProxyOptions, SubscribeOptions } from './options.ts'
import { peerOf } from './peer.ts'
import { type Plan, type RequestHead, route, routeStream } from './route.ts'

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
export function subscribe<Context extends HonoContext = HonoContext>(
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
export function honoHandler<Context extends HonoContext = HonoContext>(
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
 * On Node, streams go to its response directly, as with every adapter there: through a `Response` each write would be a
 * dozen promises. All else is fetch.
 */
function createHonoExchange(hub: Hub, options: { sinkBudgetBytes?: number }) {
  const onFetch = createFetchExchange(hub, options)
  const onNode = createNodeExchange(hub, options)

  return async (planned: Promise<Plan>, { req, res, env }: HonoContext): Promise<Response> => {
    const plan = await planned
    const node = nodeOf(env)
    if (plan.kind !== 'stream' || !node) return onFetch(plan, req.raw)
    // What middleware has set by now, as CORS does.
    for (const [name, value] of res.headers) node.outgoing.setHeader(name, value)
    onNode(plan, node.incoming, node.outgoing)
    return alreadySent()
  }
}

function nodeOf(env: unknown): { incoming: IncomingMessage; outgoing: ServerResponse } | undefined {
  const { incoming, outgoing } = (env ?? {}) as { incoming?: IncomingMessage; outgoing?: ServerResponse }
  return incoming && outgoing ? { incoming, outgoing } : undefined
}

/** Tells `@hono/node-server` to leave the response alone. */
function alreadySent(): Response {
  const response = new Response(null, { headers: { 'x-hono-already-sent': 'true' } })
  // That server puts a light `Response` of its own in the place of the standard one, and sends such a one as it is, without
  // a look at this header. Asked for its body, it turns into a real one.
  void response.body
  return response
}

function headOf<Context extends HonoContext>(
  context: Context,
  { authorize, trustProxy }: HonoSubscribeOptions<Context>,
): RequestHead {
  const head = fetchHead(context.req.raw)
  const ip = nodeOf(context.env)?.incoming.socket?.remoteAddress ?? null
  return { ...head, ...peerOf({ ...head, ip }, trustProxy), authorize: authorize && (() => authorize(context)) }
}
