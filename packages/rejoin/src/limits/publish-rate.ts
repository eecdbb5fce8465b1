import type { IncomingMessage } from 'node:http'
import { networkOf } from '@rejoin/hub'
import { addressOf } from '@rejoin/hub/internal'
import type { Rejection, RequestLimits } from './options.ts'
import { createTokenBuckets } from './token-bucket.ts'

/**
 * For how many milliseconds the sender of a publish has to wait: the hub's `rateLimit`. With 0 it need not, and has used up
 * one of its publishes. Senders without a subject are counted by their address, or all of them would share one ration.
 */
export type PublishRate = (subject: string | null, request: IncomingMessage) => number

/** Undefined where there is no limit. */
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
  /** Whether `X-Forwarded-For` can be believed. */
  readonly trustProxy: boolean
  onReject(kind: Rejection): void
  now(): number
}
