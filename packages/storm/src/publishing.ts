import { setTimeout } from 'node:timers/promises'
import { textOf } from './numbered-event.ts'
import { channelOf, type StormPlan } from './plan.ts'

/** Publishes an atomic batch exactly once, with retries if needed. Rejects when the hub does not take it. */
export type PublishBatch = (events: readonly { channel: string; text: string }[]) => Promise<unknown>

/** The progress of the publisher. Events are numbered from 0, in the order of the log. */
export interface Published {
  /** How many events may have reached the hub. */
  sent: number
  /** How many events the hub has confirmed. */
  confirmed: number
}

/**
 * Publishes at the rate of the plan until its time is over or the signal is aborted. A slower hub gets fewer events. Each batch
 * waits for the answer to the batch before, so that the numbers follow the order of the log, for readers of several channels too.
 */
export async function publishAtRate(
  plan: StormPlan,
  published: Published,
  publish: PublishBatch,
  signal: AbortSignal,
): Promise<void> {
  const startedAt = performance.now()
  const most = Math.min(maxBatchEvents, Math.max(1, Math.floor(maxBatchBytes / (plan.size + envelopeBytes))))
  let elapsed = 0
  while (elapsed < plan.forMs && !signal.aborted) {
    elapsed = Math.min(performance.now() - startedAt, plan.forMs)
    const due = Math.floor((elapsed * plan.rate) / 1000)
    const count = Math.min(due - published.sent, most)
    if (count > 0) await publishNext(plan, count, published, publish)
    else if (elapsed < plan.forMs) await setTimeout(everyMs, undefined, { signal }).catch(() => undefined)
  }
}

async function publishNext(plan: StormPlan, count: number, published: Published, publish: PublishBatch): Promise<void> {
  const first = published.sent
  const at = performance.now()
  published.sent += count
  await publish(
    Array.from({ length: count }, (_, index) => ({
      channel: channelOf(plan, first + index),
      text: textOf({ number: first + index, at }, plan.size),
    })),
  )
  published.confirmed = published.sent
}

// Often enough that readers of one channel see a steady stream instead of bursts.
const everyMs = 10
// The most that a hub takes (§5.1), less some room for the names of fields and channels.
const maxBatchEvents = 1000
const maxBatchBytes = 250_000
const envelopeBytes = 400
