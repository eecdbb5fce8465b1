import type { RejoinError } from '@rejoin/protocol'
import type { Stamp } from '../../contract.ts'
import type { Once } from '../../idempotency.ts'
import type { Windows } from '../../window.ts'
import type { OpenedLog } from '../files/opening.ts'
import { formatKey, stateKey } from '../format/keys.ts'
import { sealFormat } from '../format/log-format.ts'
import { type LogState, sealLogState } from '../format/state.ts'
import type { StoredOnce } from '../idempotency.ts'
import { createDraft, type Draft } from './draft.ts'
import { trimAtMost } from './trim.ts'

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

export interface CommitsOptions {
  readonly opened: OpenedLog
  readonly once: StoredOnce
  readonly windows: Windows
  readonly maxBytes: number | undefined
  now(): number
  /** The log's state as it was last committed. */
  state(): LogState
  /** Called after each commit, in order, before the submitters of its changes are resumed. */
  onCommit(draft: Draft): void
}

// One commit is worked out in one turn of the event loop. At this size that takes some milliseconds. A batch of a thousand
// events in a thousand channels has this size. A larger change is a commit of its own.
export const maxSize = 4096

export function createCommits(options: CommitsOptions): Commits {
  let waiting: Waiting[] = []
  let busy: Promise<void> | undefined

  async function run(): Promise<void> {
    // Takes the group at the end of this turn: publishers that have just been answered can submit their next event before it.
    while (waiting.length > 0) {
      await new Promise((resolve) => setImmediate(resolve))
      const group = takeGroup()
      await writeCommit(options, group).then(
        (draft) => {
          for (const { rejection, result, resolve, reject } of group) {
            if (rejection) reject(rejection)
            else resolve(result)
          }
          options.onCommit(draft)
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
        const added: Waiting = { change, result, resolve: resolve as Waiting['resolve'], reject }
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
  /** Why the change was not made. */
  rejection?: RejoinError | undefined
  resolve(result: unknown): void
  reject(error: unknown): void
}

/** Works out what the changes of a group come to, and writes that in one commit. */
async function writeCommit(
  { opened, once, windows, maxBytes, ...log }: CommitsOptions,
  group: readonly Waiting[],
): Promise<Draft> {
  const { store, history, marks } = opened
  opened.assertThere()
  const { draft, puts, removals } = await store.reading(() => {
    const now = log.now()
    const draft = createDraft(store, log.state(), { windows, now, atMost: trimAtMost, maxBytes, marks })
    for (const waiting of group) waiting.rejection = waiting.change.apply(draft)
    const events = draft.changes()
    const published = group.flatMap(({ change, rejection }) => (rejection ? [] : (change.publish ?? [])))
    const keys = once.changes(published, draft.state, now)
    const own = [{ key: stateKey, value: sealLogState(stateKey, draft.state) }]
    const { formats } = draft
    if (formats) own.push({ key: formatKey, value: sealFormat(formatKey, { formats, history, marks }) })
    const removals = [...events.removals, ...keys.removals]
    return { draft, puts: [...events.puts, ...keys.puts, ...own], removals }
  })
  // To work out a large commit and to hand it to LMDB both take long, so each has a turn of its own.
  const isLarge = puts.length + removals.length > largeCommit
  if (isLarge) await new Promise((resolve) => setImmediate(resolve))
  await opened.write({ puts, removals })
  return draft
}

const largeCommit = 256
