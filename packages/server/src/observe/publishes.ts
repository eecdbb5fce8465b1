import type { Hub } from '@rejoin/hub'
import { type ErrorCode, RejoinError } from '@rejoin/protocol'

/** How publishing goes: what operators are shown, and the evidence that the log takes events. */
export interface Publishes {
  /** To be called in place of the hub's own. */
  readonly publish: Hub['publish']
  readonly publishBatch: Hub['publishBatch']
  /** Calls `tell` for each publish that is over; a batch is one. */
  onResult(tell: (result: PublishResult, seconds: number) => void): void
  /** What is wrong with publishing now, undefined when there is no sign of anything. */
  trouble(): string | undefined
}

/** Or why it failed; `failed` is a failure that is not explained by a code. */
export type PublishResult = 'ok' | 'failed' | ErrorCode

// A publish waits for a flush of the disk and for the tail. One that takes this long is not slow, it is stuck.
const stuckMs = 10_000
// For so long a log that refused an event is believed to refuse the next. Then one has to try: whoever is sent away from a
// hub that is not ready would never find out that it is again.
const refusedMs = 10_000

export function watchPublishes(hub: Hub, now: () => number = () => performance.now()): Publishes {
  const tellers: ((result: PublishResult, seconds: number) => void)[] = []
  // In the order in which they began.
  const underWay = new Set<{ readonly since: number }>()
  let refusedAt = Number.NEGATIVE_INFINITY

  async function timed<Value>(publishing: Promise<Value>): Promise<Value> {
    const begun = { since: now() }
    underWay.add(begun)
    let result: PublishResult = 'ok'
    try {
      return await publishing
    } catch (error) {
      result = error instanceof RejoinError ? error.code : 'failed'
      throw error
    } finally {
      underWay.delete(begun)
      const at = now()
      if (result === 'ok') refusedAt = Number.NEGATIVE_INFINITY
      else if (result === 'log-unavailable' || result === 'failed') refusedAt = at
      for (const tell of tellers) tell(result, (at - begun.since) / 1000)
    }
  }

  return {
    publish: (channel, message, options) => timed(hub.publish(channel, message, options)),
    publishBatch: (messages, options) => timed(hub.publishBatch(messages, options)),
    onResult: (tell) => void tellers.push(tell),
    trouble() {
      const [oldest] = underWay
      if (oldest && now() - oldest.since > stuckMs) return 'a publish has been under way for more than 10 s'
      if (now() - refusedAt < refusedMs) return 'the log has just refused an event'
      return undefined
    },
  }
}
