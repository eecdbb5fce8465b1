import type { IncomingMessage } from 'node:http'
import { type Grant, networkOf } from '@rejoin/hub'
import type { Access } from '../access/access.ts'
import type { Rejection, RequestLimits } from './options.ts'
import { createTokenBuckets } from './token-bucket.ts'

/**
 * For how many milliseconds the sender of a publish has to wait; with 0 it need not, and has used up one of its publishes.
 *
 * @param subject - who it is, if that is known. Those who are not known go by their address, or all would share one ration.
 */
export type PublishRate = (request: IncomingMessage, subject?: string | null) => number

/** Undefined where there is no limit. */
export function createPublishRate(limits: RequestLimits, context: PublishRateContext): PublishRate | undefined {
  const { maxPublishesPerSecond: perSecond } = limits
  if (!perSecond) return undefined
  const { publishBurst: burst = perSecond } = limits
  const ration = { perSecond, burst, now: context.now }
  const bySubject = createTokenBuckets(ration)
  const byAddress = createTokenBuckets(ration)
  return (request, subject) => {
    const waitMs =
      typeof subject === 'string'
        ? bySubject.take(subject)
        : byAddress.take(networkOf(context.addressOf(request) ?? ''))
    if (waitMs > 0) context.onReject('publish-rate')
    return waitMs
  }
}

export interface PublishRateContext {
  /** The address that a request came from. */
  addressOf(request: IncomingMessage): string | null
  onReject(kind: Rejection): void
  now(): number
}

/**
 * `authorize`, with rights that tell whoever publishes too fast to wait. Not a step before the hub: who publishes would have
 * to be found out twice. Who fails to be known pays too, by address.
 */
export function paced(authorize: Access['authorize'], rate: PublishRate): Access['authorize'] {
  function pace(request: IncomingMessage, grant: Grant | null): Grant | null {
    const waitMs = rate(request, grant?.subject)
    return waitMs > 0 ? { subject: null, ...grant, waitMs } : grant
  }

  function paceUnknown(request: IncomingMessage, error: unknown): Grant {
    const waitMs = rate(request)
    if (waitMs > 0) return { subject: null, waitMs }
    throw error
  }

  return (request) => {
    if (request.method !== 'POST') return authorize(request)
    try {
      const grant = authorize(request)
      if (!(grant instanceof Promise)) return pace(request, grant)
      return grant.then(
        (known) => pace(request, known),
        (error) => paceUnknown(request, error),
      )
    } catch (error) {
      return paceUnknown(request, error)
    }
  }
}
