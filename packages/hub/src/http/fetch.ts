import type { Hub } from '../hub/hub.ts'
import { askedChannels } from './asked-channels.ts'
import { createFetchExchange, responseOf } from './fetch-exchange.ts'
import { type HubSource, isHubPath, unopened, unopenedStream, withHub } from './hub-source.ts'
import type { AdapterOptions, BasePathOptions, ProxyOptions, SubscribeOptions } from './options.ts'
import { fetchHead, peerOf, type RequestHead } from './request-head.ts'
import { nothingHere, route, routeStream } from './route.ts'

/** The arguments of a handler: the request, and the arguments that a platform such as Bun, Deno or Next.js adds. */
export type FetchCall<Rest extends readonly unknown[]> = readonly [request: Request, ...rest: Rest]

export interface AddressOptions<Rest extends readonly unknown[]> {
  /**
   * Gives the address of the peer, which a `Request` does not hold.
   * @defaultValue none: limits per address do not apply, unless `trustProxy` is set
   */
  ip?: ((...call: FetchCall<Rest>) => string | null | undefined) | undefined
}

export type FetchHandlerOptions<Rest extends readonly unknown[]> = AdapterOptions<FetchCall<Rest>> &
  AddressOptions<Rest> &
  BasePathOptions &
  ProxyOptions

export type FetchSubscribeOptions<Rest extends readonly unknown[]> = SubscribeOptions<FetchCall<Rest>> &
  AddressOptions<Rest> &
  ProxyOptions

export type FetchHandler<Rest extends readonly unknown[]> = (...call: FetchCall<Rest>) => Promise<Response>

/** The whole hub, with streams, polls and publishing: `Deno.serve(fetchHandler(hub))`. Other paths are answered with 404. */
export function fetchHandler<Rest extends readonly unknown[] = []>(
  hub: HubSource,
  options: FetchHandlerOptions<Rest> = {},
): FetchHandler<Rest> {
  const { basePath = '' } = options
  const handlerOf = (hub: Hub): FetchHandler<Rest> => {
    const exchange = createFetchExchange(hub, options)
    return (...call) => exchange(route(hub, { ...headOf(call, options), basePath }) ?? nothingHere, call[0])
  }
  return withLength(
    withHub<FetchHandler<Rest>>(hub, handlerOf, {
      isForHub: (...[request]) => isHubPath({ ...fetchHead(request), basePath }),
      without: async (...[request]) => responseOf(unopened({ ...fetchHead(request), basePath }) ?? nothingHere.answer),
    }),
  )
}

/** Streams at a path of your own, such as a route handler of Next.js. `channels` names the channels, else `?channel=` does. */
export function subscribe<Rest extends readonly unknown[] = []>(
  hub: HubSource,
  options: FetchSubscribeOptions<Rest> = {},
): FetchHandler<Rest> {
  const handlerOf = (hub: Hub): FetchHandler<Rest> => {
    const exchange = createFetchExchange(hub, options)
    return (...call) => {
      const channels = askedChannels(options, {}, ...call)
      return exchange(routeStream(hub, headOf(call, options), channels), call[0])
    }
  }
  const without: FetchHandler<Rest> = async (...[request]) => responseOf(unopenedStream(fetchHead(request)))
  return withLength(withHub<FetchHandler<Rest>>(hub, handlerOf, { without }))
}

/** Deno passes as many arguments as a handler's `length`: the request, and the facts of the connection. `...call` counts as 0. */
function withLength<Handler extends (...call: never[]) => unknown>(handler: Handler): Handler {
  return Object.defineProperty(handler, 'length', { value: 2 })
}

function headOf<Rest extends readonly unknown[]>(
  call: FetchCall<Rest>,
  { authorize, rateLimit, ip, trustProxy }: FetchSubscribeOptions<Rest>,
): RequestHead {
  const head = fetchHead(call[0])
  return {
    ...head,
    peer: () => peerOf(head, ip?.(...call), trustProxy),
    authorize: authorize && (() => authorize(...call)),
    rateLimit: rateLimit && ((subject) => rateLimit(subject, ...call)),
  }
}
