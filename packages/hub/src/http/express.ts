import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Hub } from '../hub/hub.ts'
import { askedChannels } from './asked-channels.ts'
import { createNodeExchange } from './node-exchange.ts'
import { nodeAddress, nodeHead } from './node-head.ts'
import type { AdapterOptions, SubscribeOptions } from './options.ts'
import { nothingHere, type RequestHead, route, routeStream } from './route.ts'

/** What is used of a request of Express, 4 or 5. */
export interface ExpressRequest extends IncomingMessage {
  readonly params: object
  /** By the application's `trust proxy`. */
  readonly ip?: string | undefined
  readonly app: { get(setting: string): unknown }
}

export type ExpressHandler<Request extends ExpressRequest> = (
  request: Request,
  response: ServerResponse,
  next?: (error?: unknown) => void,
) => void

/**
 * Streams at a route of your own: `app.get('/events/*channel', subscribe(hub))`, or `'/events/*'` on Express 4. The channel
 * is what the pattern has matched, unless the option `channels` says.
 */
export function subscribe<Request extends ExpressRequest = import('express').Request>(
  hub: Hub,
  options: SubscribeOptions<[request: Request]> = {},
): ExpressHandler<Request> {
  const exchange = createNodeExchange(hub, options)
  return (request, response, next) => {
    const plan = routeStream(hub, headOf(request, options), askedChannels(options, request.params, request))
    exchange(plan, request, response, next)
  }
}

/**
 * All of the hub, streams, polls and publishing: `app.use(expressHandler(hub))`, or below a path, `app.use('/api', …)`. What
 * is not the hub's goes on to the next handler. Mount it before `express.json()`, which would take a publish's body away.
 */
export function expressHandler<Request extends ExpressRequest = import('express').Request>(
  hub: Hub,
  options: AdapterOptions<[request: Request]> = {},
): ExpressHandler<Request> {
  const exchange = createNodeExchange(hub, options)
  return (request, response, next) => {
    const plan = route(hub, headOf(request, options))
    if (!plan && next) next()
    else exchange(plan ?? nothingHere, request, response, next)
  }
}

function headOf<Request extends ExpressRequest>(
  request: Request,
  { authorize, rateLimit }: AdapterOptions<[request: Request]>,
): RequestHead {
  return {
    ...nodeHead(request),
    peer: () => ({ ip: request.ip, trusted: isTrusted(request, nodeAddress(request)) }),
    authorize: authorize && (() => authorize(request)),
    rateLimit: rateLimit && ((subject) => rateLimit(subject, request)),
  }
}

/** Express compiles its setting `trust proxy` into a function of an address and its distance. */
function isTrusted({ app }: ExpressRequest, peer: string | undefined): boolean {
  const trust = app.get('trust proxy fn') as ((address: string | undefined, distance: number) => boolean) | undefined
  return trust?.(peer, 0) ?? false
}
