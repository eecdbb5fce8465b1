import type { Hub } from '@rejoin/hub'
import { type ErrorCode, RejoinError } from '@rejoin/protocol'

/** Or why it failed; `failed` is a failure that is not explained by a code. */
export type PublishResult = 'ok' | 'failed' | ErrorCode

/**
 * The hub, with `tell` called for each publish that is over; a batch is one. Everything else is the hub's own, so it
 * stands behind the new one and is not copied, which would stop what it reckons when it is asked.
 */
export function watchPublishes(hub: Hub, tell: (result: PublishResult, seconds: number) => void): Hub {
  /** Not an async function, which would add two more promises to every publish. */
  function timed<Value>(publishing: Promise<Value>, since: number): Promise<Value> {
    return publishing.then(
      (value) => {
        tell('ok', (performance.now() - since) / 1000)
        return value
      },
      (error) => {
        tell(error instanceof RejoinError ? error.code : 'failed', (performance.now() - since) / 1000)
        throw error
      },
    )
  }

  const publishing: Pick<Hub, 'publish' | 'publishBatch'> = {
    publish: (channel, message, options) => timed(hub.publish(channel, message, options), performance.now()),
    publishBatch: (messages, options) => timed(hub.publishBatch(messages, options), performance.now()),
  }
  return Object.assign(Object.create(hub) as Hub, publishing)
}
