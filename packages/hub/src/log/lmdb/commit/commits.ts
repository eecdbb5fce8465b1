import type { RejoinError } from '@rejoin/protocol'
import type { Stamp } from '../../contract.ts'
import type { Once } from '../../idempotency.ts'
import type { Draft } from './draft.ts'

/**
 * Group commit. All changes that are submitted while a commit is under way, or within one turn of the event loop, go into the
 * next commit. So many publishers share one flush of the disk, and each is answered when its own commit is done.
 */
export interface Commits {
  /**
   * Resolves when the change is as durable as the log promises. Changes are made in the order in which they were submitted,
   * except that those with `isFirst` go before the others.
   *
   * @param result - what it resolves with. The result travels with the change, because another promise (`then`) would make each
   *   publish slower.
   */
  submit<Result = undefined>(change: Change, result?: Result): Promise<Result>
  /** Resolves when everything that was submitted is done. */
  settled(): Promise<void>
}

export interface Change {
  /**
   * Adds the change to the commit. Must not throw, because other changes are in the same commit. A change that cannot be made
   * adds nothing and returns a rejection, which its submitter gets.
   */
  apply(draft: Draft): RejoinError | undefined
  /** About how many entries of the file the change reads or writes. */
  readonly size: number
  /** The change goes before all changes that wait. */
  readonly isFirst?: boolean
  /** Set for a publish under an idempotency key. */
  readonly publish?: { readonly once: Once; readonly stamps: readonly Stamp[] } | undefined
}

export interface CommitsOptions<Made extends Commit> {
  /** Makes all these changes, in one step and in this order, and resolves when they are durable. */
  commit(changes: readonly Change[]): Promise<Made>
  /** Called after each commit, in order, before the submitters of its changes are resumed. */
  onCommit(made: Made): void
}

export interface Commit {
  /** Why some of the changes were not made. */
  readonly rejections: ReadonlyMap<Change, RejoinError>
}

// One commit is worked out in one turn of the event loop. At this size that takes some milliseconds. A batch of a thousand
// events in a thousand channels has this size. A larger change is a commit of its own.
export const maxSize = 4096

export function createCommits<Made extends Commit>({ commit, onCommit }: CommitsOptions<Made>): Commits {
  let waiting: Waiting[] = []
  let busy: Promise<void> | undefined

  async function run(): Promise<void> {
    // Takes the group at the end of this turn: publishers that have just been answered can submit their next event before it.
    while (waiting.length > 0) {
      await new Promise((resolve) => setImmediate(resolve))
      const group = takeGroup()
      await commit(group.map(({ change }) => change)).then(
        (made) => {
          for (const { change, result, resolve, reject } of group) {
            const rejection = made.rejections.get(change)
            if (rejection) reject(rejection)
            else resolve(result)
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
    submit(change, result) {
      return new Promise((resolve, reject) => {
        const added = { change, result, resolve: resolve as Waiting['resolve'], reject }
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
  readonly result: unknown
  resolve(result: unknown): void
  reject(error: unknown): void
}
