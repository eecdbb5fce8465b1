import type { Published, PublishMessage } from '@rejoin/client/publisher'
import { RejoinError } from '@rejoin/protocol'
import type { ProgramHost } from '../program-host.ts'
import { type HubAddress, withNextStep } from './hub-address.ts'
import { whyUnreachable } from './unreachable.ts'

export interface HubPublisher {
  publish(event: HubEvent, idempotencyKey?: string): Promise<Published>
  publishBatch(events: readonly HubEvent[]): Promise<Published[]>
}

type HubEvent = PublishMessage & { readonly channel: string }

/**
 * Publishes over HTTP. Waits for a hub that has answered before and went away. Gives up at once on a hub that never answered,
 * because a person waits for the command.
 */
export async function openPublisher(address: HubAddress, host: ProgramHost): Promise<HubPublisher> {
  const { createPublisher } = await import('@rejoin/client/publisher')
  const { url, token } = address
  const givingUp = new AbortController()
  let answered = false
  const publisher = createPublisher(`${url}/publish`, {
    ...(token === undefined ? {} : { token }),
    async fetch(input, init) {
      try {
        const response = await fetch(input, init)
        answered = true
        return response
      } catch (error) {
        const reason = answered ? undefined : await whyUnreachable(error, url, host)
        if (reason) givingUp.abort(reason)
        throw error
      }
    },
  })
  const { signal } = givingUp

  return {
    publish: ({ channel, ...message }, idempotencyKey) =>
      publisher
        .publish(channel, message, { signal, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) })
        .catch(explain),
    publishBatch: (events) => publisher.publishBatch(events, { signal }).catch(explain),
  }

  function explain(error: unknown): never {
    throw error instanceof RejoinError ? withNextStep(error, token) : error
  }
}
