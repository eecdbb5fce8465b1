import type { Outcome, Send } from './publisher.ts'

/**
 * Publishes what is called for within `collectMs` as one atomic batch. One that gets no answer is sent again as it is and
 * under its own key, so that whoever published waits until it is there or rejected.
 */
export function inBatches(send: SendBatch, collectMs: number): Send {
  let open: Batch | undefined

  async function close(batch: Batch): Promise<void> {
    open = undefined
    for (let attempt = 0; attempt < mostAttempts; attempt += 1) {
      const outcome = await send(batch.events, batch.key)
      if (outcome.kind !== 'unknown') {
        batch.settle(outcome)
        return
      }
      await new Promise((resolve) => setTimeout(resolve, againAfterMs))
    }
    batch.settle({ kind: 'unknown', why: `no answer to ${mostAttempts} attempts` })
  }

  return async (channel, text, key) => {
    if (!open) {
      const batch = createBatch(key)
      open = batch
      setTimeout(() => void close(batch), collectMs)
    }
    const { events, outcome } = open
    const index = events.push({ channel, text }) - 1
    const settled = await outcome
    return settled.kind === 'ok' ? { kind: 'ok', id: settled.ids[index] as string } : settled
  }
}

// As long as a hub, or its Redis, is away in any run.
const mostAttempts = 1000
const againAfterMs = 50

export type SendBatch = (events: readonly TextEvent[], idempotencyKey: string) => Promise<BatchOutcome>

export type BatchOutcome = { readonly kind: 'ok'; readonly ids: readonly string[] } | Exclude<Outcome, { kind: 'ok' }>

export interface TextEvent {
  readonly channel: string
  readonly text: string
}

interface Batch {
  /** That of its first event, which no other batch has. */
  readonly key: string
  readonly events: TextEvent[]
  readonly outcome: Promise<BatchOutcome>
  settle(outcome: BatchOutcome): void
}

function createBatch(key: string): Batch {
  let settle: Batch['settle'] = () => undefined
  const outcome = new Promise<BatchOutcome>((resolve) => {
    settle = resolve
  })
  return { key, events: [], outcome, settle }
}
