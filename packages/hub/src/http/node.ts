import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Hub } from '../hub/hub.ts'
import { type HubSource, isHubPath, unopened, withHub } from './hub-source.ts'
import { serveInLaterTurn } from './later-turn.ts'
import { createNodeExchange } from './node-exchange.ts'
import type { AdapterOptions, BasePathOptions, BodyOptions, ProxyOptions } from './options.ts'
import { boundPipelining } from './pipelining.ts'
import { nodeAddress, nodeHead, peerOf } from './request-head.ts'
import { nothingHere, route } from './route.ts'
import { sendPlainAnswer } from './send.ts'

export type NodeHandlerOptions = AdapterOptions<[request: IncomingMessage]> &
  BasePathOptions &
  ProxyOptions &
  BodyOptions

export interface NodeHandler {
  (request: IncomingMessage, response: ServerResponse, next?: Next): void
  /** HTTP/2, by Node's compatible API. `authorize` gets the HTTP/2 request, which has the same method, url and headers. */
  (request: Http2ServerRequest, response: Http2ServerResponse, next?: Next): void
}

/** As in Connect and Express: call it without an argument for the next handler, with an error for the error handlers. */
type Next = (error?: unknown) => void

/**
 * Serves a hub on Node's own HTTP server: `createServer(nodeHandler(hub))`. Requests for other paths go to `next`; without
 * `next` they are answered with 404.
 */
export function nodeHandler(hub: HubSource, options: NodeHandlerOptions = {}): NodeHandler {
  const { basePath = '' } = options
  const handler = withHub<(...call: Call) => void>(hub, (hub) => handlerOf(hub, options), {
    isForHub: (request) => isHubPath({ ...nodeHead(request), basePath }),
    without(request, response, next) {
      const answer = unopened({ ...nodeHead(request), basePath })
      if (!answer && next) next()
      else sendPlainAnswer(response, answer ?? nothingHere.answer)
    },
  })
  return boundPipelining(serveInLaterTurn(handler)) as NodeHandler
}

type Call = [request: IncomingMessage, response: ServerResponse, next?: Next]

function handlerOf(hub: Hub, options: NodeHandlerOptions): (...call: Call) => void {
  const { authorize, rateLimit, basePath = '', trustProxy } = options
  const exchange = createNodeExchange(hub, options)

  return (request, response, next) => {
    const { method, target, header } = nodeHead(request)
    const peer = () => peerOf({ header }, nodeAddress(request), trustProxy)
    const asked = authorize && (() => authorize(request))
    const limited = rateLimit && ((subject: string | null) => rateLimit(subject, request))
    const plan = route(hub, { method, target, header, peer, basePath, authorize: asked, rateLimit: limited })
    if (!plan && next) next()
    else exchange(plan ?? nothingHere, request, response, next)
  }
}
