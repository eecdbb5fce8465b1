import type { RejoinError } from '@rejoin/protocol'
import type { Windows } from '../../window.ts'
import type { OpenedLog } from '../files/opening.ts'
import { formatKey, stateKey } from '../format/keys.ts'
import { sealFormat } from '../format/log-format.ts'
import { type LogState, sealLogState } from '../format/state.ts'
import type { StoredOnce } from '../idempotency.ts'
import type { Change, Commit } from './commits.ts'
import { createDraft, type Draft } from './draft.ts'
import { trimAtMost } from './trim.ts'

export interface WrittenCommit extends Commit {
  readonly draft: Draft
}

export interface CommitBasis {
  readonly opened: OpenedLog
  /** The log's state as it was last committed. */
  readonly state: LogState
  readonly once: StoredOnce
  readonly windows: Windows
  readonly maxBytes: number | undefined
  readonly now: number
}

/** Works out what changes come to, and writes that in one commit. */
export async function writeCommit(
  { opened, state, once, windows, maxBytes, now }: CommitBasis,
  changes: readonly Change[],
): Promise<WrittenCommit> {
  const { store, history } = opened
  opened.assertThere()
  const { draft, made, rejections } = await store.reading(() => {
    const draft = createDraft(store, state, { windows, now, atMost: trimAtMost, maxBytes })
    const rejections = new Map<Change, RejoinError>()
    for (const change of changes) {
      const rejection = change.apply(draft)
      if (rejection) rejections.set(change, rejection)
    }
    const events = draft.changes()
    const published = changes.flatMap((change) => (rejections.has(change) ? [] : (change.publish ?? [])))
    const keys = once.changes(published, draft.state, now)
    const sealed = { key: stateKey, value: sealLogState(stateKey, draft.state) }
    const format = draft.formats && {
      key: formatKey,
      value: sealFormat(formatKey, { formats: draft.formats, history }),
    }
    const own = format ? [sealed, format] : [sealed]
    const made = { puts: [...events.puts, ...keys.puts, ...own], removals: [...events.removals, ...keys.removals] }
    return { draft, made, rejections }
  })
  // To work out a large commit and to hand it to LMDB both take long, so each has a turn of its own.
  const isLarge = made.puts.length + made.removals.length > largeCommit
  if (isLarge) await new Promise((resolve) => setImmediate(resolve))
  await opened.write(made)
  // Only now is it certain that the commit is in the folder, and continues what was there.
  opened.assertThere()
  return { draft, rejections }
}

const largeCommit = 256
