import type { IncomingMessage, ServerResponse } from 'node:http'
import { askedChannels } from './asked-channels.ts'
import { type HubSource, isHubPath, unopened, unopenedStream, withHub } from './hub-source.ts'
import { createNodeExchange } from './node-exchange.ts'
import type { AdapterOptions, SubscribeOptions } from './options.ts'
import { boundPipelining } from './pipelining.ts'
import { nodeAddress, nodeHead, type RequestHead } from './request-head.ts'
import { nothingHere, route, routeStream } from './route.ts'
import { sendPlainAnswer } from './send.ts'

/** The part of an Express request, 4 or 5, that the adapter uses. */
export interface ExpressRequest extends IncomingMessage {
  readonly params: object
  /** The client's address, by the application's setting `trust proxy`. */
  readonly ip?: string | undefined
  readonly app: { get(setting: string): unknown }
}

export type ExpressHandler<Request extends ExpressRequest> = (
  request: Request,
  response: ServerResponse,
  next?: (error?: unknown) => void,
) => void

/**
 * Streams at a route of your own: `app.get('/events/*channel', subscribe(hub))`, or `'/events/*'` on Express 4. The text that
 * the pattern matches is the channel, unless the option `channels` names others.
 */
export function subscribe<Request extends ExpressRequest = import('express').Request>(
  hub: HubSource,
  options: SubscribeOptions<[request: Request]> = {},
): ExpressHandler<Request> {
  return boundPipelining(
    withHub<ExpressHandler<Request>>(
      hub,
      (hub) => {
        const exchange = createNodeExchange(hub, options)
        return (request, response, next) => {
          const plan = routeStream(hub, headOf(request, options), askedChannels(options, request.params, request))
          exchange(plan, request, response, next)
        }
      },
      { without: (request, response) => sendPlainAnswer(response, unopenedStream(nodeHead(request))) },
    ),
  )
}

/**
 * The whole hub, with streams, polls and publishing: `app.use(expressHandler(hub))`, or below a path, `app.use('/api', …)`.
 * Requests for other paths go to the next handler. Mount it before `express.json()`, which would consume the body of a publish.
 */
export function expressHandler<Request extends ExpressRequest = import('express').Request>(
  hub: HubSource,
  options: AdapterOptions<[request: Request]> = {},
): ExpressHandler<Request> {
  return boundPipelining(
    withHub<ExpressHandler<Request>>(
      hub,
      (hub) => {
        const exchange = createNodeExchange(hub, options)
        return (request, response, next) => {
          const plan = route(hub, headOf(request, options))
          if (!plan && next) next()
          else exchange(plan ?? nothingHere, request, response, next)
        }
      },
      {
        isForHub: (request) => isHubPath(nodeHead(request)),
        without(request, response, next) {
          const answer = unopened(nodeHead(request))
          if (!answer && next) next()
          else sendPlainAnswer(response, answer ?? nothingHere.answer)
        },
      },
    ),
  )
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

/** Express compiles its setting `trust proxy` into a function of an address and its distance, which judges the peer here. */
function isTrusted({ app }: ExpressRequest, peer: string | undefined): boolean {
  const trust = app.get('trust proxy fn') as ((address: string | undefined, distance: number) => boolean) | undefined
  return trust?.(peer, 0) ?? false
}
