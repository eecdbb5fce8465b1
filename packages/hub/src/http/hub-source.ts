import { RejoinError } from '@rejoin/protocol'
import type { Hub } from '../hub/hub.ts'
import { type Answer, rejection } from './answer.ts'
import { isPublisherEndpoint, isReaderEndpoint } from './endpoints.ts'
import { rejectedReader } from './reject-reader.ts'
import type { RequestHead } from './request-head.ts'

/**
 * A hub, or a function that opens one. The function is called by the first request, so that a process which only loads the module,
 * as a build does, opens nothing. When it fails, that request and those that came meanwhile are told to return (503), and the next
 * request calls it again. Once it has given a hub, it is not called again.
 */
export type HubSource = Hub | (() => Hub | Promise<Hub>)

/** A handler that serves the hub of a source. */
export function withHub<Handler extends (...call: never[]) => unknown>(
  source: HubSource,
  handlerOf: (hub: Hub) => Handler,
  { isForHub = () => true, without }: WithoutHub<Handler>,
): Handler {
  if (typeof source !== 'function') return handlerOf(source)
  let handler: Handler | undefined
  let opening: Promise<Handler | undefined> | undefined
  let warned = ''

  async function open(giveHub: () => Hub | Promise<Hub>): Promise<Handler | undefined> {
    try {
      handler = handlerOf(await giveHub())
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      // Each request tries again, and would say the same again.
      if (message !== warned) process.emitWarning(`The hub could not be opened: ${message}`)
      warned = message
    }
    return handler
  }

  const serve = async (...call: Parameters<Handler>) => {
    if (!isForHub(...call)) return without(...call)
    if (!handler) {
      opening ??= open(source).finally(() => {
        opening = undefined
      })
    }
    return ((handler ?? (await opening)) || without)(...call)
  }
  // Frameworks take a promise where they take a result, and await the promise of a handler that answers with one.
  return serve as unknown as Handler
}

export interface WithoutHub<Handler extends (...call: never[]) => unknown> {
  /**
   * Whether a request is one for the hub. Others do not open it.
   * @defaultValue every request
   */
  isForHub?(...call: Parameters<Handler>): boolean
  /** Answers a request without the hub. */
  readonly without: Handler
}

type Head = Pick<RequestHead, 'method' | 'target' | 'basePath'>

/** Whether the path is one of the hub's: for other paths, `route` has no plan. */
export function isHubPath({ target, basePath = '' }: Head): boolean {
  const { endpoint } = target.below(basePath)
  return isReaderEndpoint(endpoint) || isPublisherEndpoint(endpoint)
}

/** The answer to a request for a path of a hub that is not open; undefined when the path is not one of the hub's. */
export function unopened(head: Head): Answer | undefined {
  if (!isHubPath(head)) return undefined
  const target = head.target.below(head.basePath ?? '')
  return isReaderEndpoint(target.endpoint) ? unopenedStream({ ...head, target }) : rejection(notOpen())
}

/** The answer to a request for a stream of a hub that is not open. */
export function unopenedStream({ method, target }: Head): Answer {
  if (method !== 'GET') return rejection(notOpen())
  return rejectedReader(target, {
    reason: 'log-unavailable',
    retryMs: minRetryMs + Math.floor(Math.random() * spreadMs),
  })
}

// As a hub with few readers tells them. They return spread, although this process does not know how many there are.
const minRetryMs = 2000
const spreadMs = 1000

function notOpen(): RejoinError {
  return new RejoinError('The hub is not open yet. Retry-After says when to ask again.', { code: 'log-unavailable' })
}
