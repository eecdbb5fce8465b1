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

// A publish waits for a flush of the disk and for the tail. When none comes to an end for this long, they are stuck.
const stuckMs = 10_000
// For so long a log that refused an event is believed to refuse the next. Then one has to try: whoever is sent away from a
// hub that is not ready would never find out that it is again.
const refusedMs = 10_000

export function watchPublishes(hub: Hub, now: () => number = () => performance.now()): Publishes {
  const tellers: ((result: PublishResult, seconds: number) => void)[] = []
  let underWay = 0
  // When one came to its end, or began with none before it.
  let movedAt = 0
  let refusedAt = Number.NEGATIVE_INFINITY

  /** Not an async function, which would add two more promises to every publish. */
  function timed<Value>(begin: () => Promise<Value>): Promise<Value> {
    const since = now()
    if (underWay === 0) movedAt = since
    underWay += 1
    return begin().then(
      (value) => {
        refusedAt = Number.NEGATIVE_INFINITY
        over('ok', since)
        return value
      },
      (error) => {
        const result = error instanceof RejoinError ? error.code : 'failed'
        if (result === 'log-unavailable' || result === 'failed') refusedAt = now()
        over(result, since)
        throw error
      },
    )
  }

  function over(result: PublishResult, since: number): void {
    underWay -= 1
    movedAt = now()
    for (const tell of tellers) tell(result, (movedAt - since) / 1000)
  }

  return {
    publish: (channel, message, options) => timed(() => hub.publish(channel, message, options)),
    publishBatch: (messages, options) => timed(() => hub.publishBatch(messages, options)),
    onResult: (tell) => void tellers.push(tell),
    trouble() {
      if (underWay > 0 && now() - movedAt > stuckMs) return 'no publish has come to its end for more than 10 s'
      if (now() - refusedAt < refusedMs) return 'the log has just refused an event'
      return undefined
    },
  }
}
