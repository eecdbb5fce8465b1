import { type Commits, maxSize } from './commits.ts'
import type { Draft } from './draft.ts'

/** Commits that no publisher asked for: they trim channels, remove old idempotency keys and shrink a log over its budget. */
export interface Upkeep {
  /** Trims a channel until it is within its window, and stores that, so that the next read need not do it again. */
  sweep(channel: string): void
  /** Makes a commit that removes old idempotency keys. */
  expireKeys(): void
  /** Makes a commit that only evicts events, for a log that is over its budget. */
  shrink(): void
  /** Goes on with what a commit had no time for. */
  afterCommit(draft: Pick<Draft, 'events' | 'unfinished' | 'isOverBudget'>): void
}

export interface UpkeepOptions {
  readonly commits: Commits
  isClosing(): boolean
}

export function createUpkeep({ commits, isClosing }: UpkeepOptions): Upkeep {
  /** Channels that are being trimmed. */
  const sweeping = new Set<string>()
  let isExpiringKeys = false
  let isShrinking = false
  /** Commits in a row that only evicted events for the budget. */
  let shrinks = 0

  function sweep(channel: string): void {
    if (sweeping.has(channel) || isClosing()) return
    sweeping.add(channel)
    const done = () => void sweeping.delete(channel)
    // When the disk is full, the next read of the channel asks for it again.
    sweepWhole(channel).then(done, done)
  }

  async function sweepWhole(channel: string): Promise<void> {
    let draft: Draft | undefined
    do {
      await commits.submit({
        size: sweepSize,
        apply(made) {
          draft = made
          made.sweep(channel, 0)
          return undefined
        },
      })
    } while (draft?.unfinished.has(channel) && !isClosing())
  }

  function shrink(): void {
    if (isShrinking || isClosing()) return
    isShrinking = true
    const done = () => {
      isShrinking = false
      return undefined
    }
    // Goes before the waiting publishes, so that the log does not grow further. After a few such commits in a row some
    // publishes go first, because a budget that was made smaller may take minutes to reach.
    const isFirst = shrinks < shrinksInARow
    // `apply` ends it, because the announcement of this commit may ask for the next one. When the disk is full, the next
    // publish asks again.
    commits.submit({ size: maxSize, apply: done, isFirst }).catch(done)
  }

  return {
    sweep,
    expireKeys() {
      if (isExpiringKeys) return
      isExpiringKeys = true
      const done = () => {
        isExpiringKeys = false
      }
      // Every commit removes some old keys. So a commit without a change will do.
      commits.submit({ size: 100, apply: () => undefined }).then(done, done)
    },
    shrink,
    afterCommit({ events, unfinished, isOverBudget }) {
      for (const channel of unfinished) sweep(channel)
      shrinks = events.length === 0 ? shrinks + 1 : 0
      if (isOverBudget()) shrink()
    },
  }
}

// One commit takes several sweeps of this size, which share the number of events that it may trim.
const sweepSize = 64

// Four of these commits evict two thousand events. A batch of a thousand events evicts a hundred.
const shrinksInARow = 4
