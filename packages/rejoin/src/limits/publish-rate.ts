import type { IncomingMessage } from 'node:http'
import { addressOf, networkOf } from '@rejoin/hub/internal'
import type { Rejection, RequestLimits } from './options.ts'
import { createTokenBuckets } from './token-bucket.ts'

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
