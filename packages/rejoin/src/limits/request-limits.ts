import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import {
  addressOf,
  isPublisherEndpoint,
  isReaderEndpoint,
  maxSelectors,
  maxBodyBytes as mostBodyBytes,
  namedSelectors,
  networkOf,
  targetOf,
} from '@rejoin/hub/internal'
import type { ErrorCode } from '@rejoin/protocol'
import { reject } from '../http/rejection.ts'
import type { Rejection, RequestLimits } from './options.ts'
import { createTokenBuckets } from './token-bucket.ts'

/** Stands right before the hub, and rejects a request with too many channels or too large a body. */
export function limitRequests(limits: RequestLimits, context: LimitContext, hub: RequestListener): RequestListener {
  const { maxChannels = maxSelectors, maxBodyBytes = mostBodyBytes } = limits

  function rejectAs(response: ServerResponse, kind: keyof typeof codes, message: string): void {
    context.onReject(kind)
    reject(response, codes[kind], message)
  }

  function rejectBody(response: ServerResponse): void {
    rejectAs(response, 'body', `The body is over ${maxBodyBytes} bytes. Publish a reference to large data instead.`)
  }

  function limitPublish(request: IncomingMessage, response: ServerResponse): void {
    const length = request.headers['content-length']
    if (Number(length) > maxBodyBytes) {
      rejectBody(response)
      return
    }
    // Without a Content-Length only the hub learns the size, once it has checked the sender's rights.
    if (length === undefined) response.once('close', () => response.statusCode === 413 && context.onReject('body'))
    hub(request, response)
  }

  return (request, response) => {
    if (request.method === 'POST' && isPublisherEndpoint(targetOf(request).endpoint)) {
      limitPublish(request, response)
    } else if (maxChannels < maxSelectors && channelsAsked(request) > maxChannels) {
      rejectAs(response, 'channels', `A stream has at most ${maxChannels} channels here. Open another one.`)
    } else {
      hub(request, response)
    }
  }
}

export interface LimitContext {
  onReject(kind: Rejection): void
}

const codes = { body: 'too-large', channels: 'invalid-channel' } satisfies Partial<Record<Rejection, ErrorCode>>

function channelsAsked(request: IncomingMessage): number {
  const { endpoint, rest, query } = targetOf(request)
  return isReaderEndpoint(endpoint) ? namedSelectors(rest, query).length : 0
}

/**
 * For how many milliseconds a publisher has to wait: the hub's `rateLimit`. 0 lets the publish through, and uses up one of the
 * publisher's ration. Publishers without a subject are counted by address: otherwise all of them would share one ration.
 */
export type PublishRate = (subject: string | null, request: IncomingMessage) => number

/** Undefined without a limit. */
export function createPublishRate(limits: RequestLimits, context: PublishRateContext): PublishRate | undefined {
  const { maxPublishesPerSecond: perSecond } = limits
  if (!perSecond) return undefined
  const { publishBurst: burst = perSecond } = limits
  const ration = { perSecond, burst, now: context.now }
  const bySubject = createTokenBuckets(ration)
  const byAddress = createTokenBuckets(ration)
  return (subject, request) => {
    const waitMs =
      subject !== null
        ? bySubject.take(subject)
        : byAddress.take(networkOf(addressOf(request, context.trustProxy) ?? ''))
    if (waitMs > 0) context.onReject('publish-rate')
    return waitMs
  }
}

export interface PublishRateContext {
  /** Whether `X-Forwarded-For` is believed. */
  readonly trustProxy: boolean
  onReject(kind: Rejection): void
  now(): number
}
