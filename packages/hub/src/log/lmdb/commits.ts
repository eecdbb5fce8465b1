import type { RejoinError } from '@rejoin/protocol'
import type { Stamp } from '../contract.ts'
import type { Once } from '../idempotency.ts'
import type { Draft } from './draft.ts'

/**
 * Group commit. Whatever was submitted while a commit was under way, or within one turn of the event loop, goes into the
 * next: so many publishers share one flush of the disk, and each is answered when its own is done.
 */
export interface Commits {
  /** Resolves when the change is as durable as the log promises. Changes are made in the order in which they came, but for those that go first. */
  submit(change: Change): Promise<void>
  /** Resolves when everything that was submitted is done. */
  settled(): Promise<void>
}

export interface Change {
  /**
   * What it adds to the commit. Must not throw: others are in the same one. One that cannot be made adds nothing and gives
   * the reason, with which its submitter is answered.
   */
  apply(draft: Draft): RejoinError | undefined
  /** Roughly the entries of the file that it reads or writes. */
  readonly size: number
  /** Made before those that wait. */
  readonly isFirst?: boolean
  /** Set when it is a publish under an idempotency key. */
  readonly publish?: { readonly once: Once; readonly stamps: readonly Stamp[] } | undefined
}

export interface CommitsOptions<Made extends Commit> {
  /** Makes all these changes, in one step and in this order, and resolves when they are durable. */
  commit(changes: readonly Change[]): Promise<Made>
  /** Called after each commit, in order, before those who wait for it are resumed. */
  onCommit(made: Made): void
}

export interface Commit {
  /** Why some of the changes were not made. */
  readonly rejections: ReadonlyMap<Change, RejoinError>
}

// What goes into one commit is worked out in one turn of the event loop: some milliseconds at this size, which a batch of a
// thousand events in a thousand channels has. A larger change is a commit of its own.
export const maxSize = 4096

export function createCommits<Made extends Commit>({ commit, onCommit }: CommitsOptions<Made>): Commits {
  let waiting: Waiting[] = []
  let busy: Promise<void> | undefined

  async function run(): Promise<void> {
    // At the end of this turn: those whose last publish has just been answered get to publish the next one first.
    while (waiting.length > 0) {
      await new Promise((resolve) => setImmediate(resolve))
      const group = takeGroup()
      await commit(group.map(({ change }) => change)).then(
        (made) => {
          for (const { change, resolve, reject } of group) {
            const rejection = made.rejections.get(change)
            if (rejection) reject(rejection)
            else resolve()
          }
          onCommit(made)
        },
        (error) => {
          for (const { reject } of group) reject(error)
        },
      )
    }
    busy = undefined
  }

  function takeGroup(): Waiting[] {
    let size = 0
    let count = 0
    for (const { change } of waiting) {
      size += change.size
      if (count > 0 && size > maxSize) break
      count += 1
    }
    const group = waiting.slice(0, count)
    waiting = waiting.slice(count)
    return group
  }

  return {
    submit(change) {
      return new Promise((resolve, reject) => {
        const added = { change, resolve, reject }
        if (change.isFirst) waiting.unshift(added)
        else waiting.push(added)
        busy ??= run()
      })
    },
    async settled() {
      while (busy) await busy
    },
  }
}

interface Waiting {
  readonly change: Change
  resolve(): void
  reject(error: unknown): void
}
