import type { Handler } from './handler-set.ts'
import { promiseNews } from './handlers.ts'
import { invalidOption } from './invalid-option.ts'
import { report } from './report.ts'
import { isCursor } from './request.ts'
import type { StreamState } from './stream-state.ts'

/**
 * Keeps the cursor of a stream beyond the page. What a store throws, or rejects with, is reported.
 *
 * @param key - what 'session' stores it under
 * @param subscribe - calls back when the cursor has changed
 * @returns the cursor that was kept, `null` when there is none, `undefined` when the store cannot say
 */
export async function persistCursor(
  persist: 'session' | CursorStore,
  key: string,
  show: () => StreamState,
  subscribe: (listener: () => void) => unknown,
  on: (kind: string, handler: Handler<never>) => unknown,
): Promise<string | null | undefined> {
  const store = persist === 'session' ? sessionStore(key) : persist
  // Promises of handlers that have not settled, oldest first, each with the cursor before its event.
  const unsettled = new Map<Promise<unknown>, string | null>()
  let isFailing = false
  let isSaving = false
  const kept = await attempt(async () => (await store.load()) || null)
  const found = kept === null || (typeof kept === 'string' && isCursor(kept)) ? kept : undefined
  let tried = found ?? null
  subscribe(() => void save())
  on(promiseNews, (settled: Promise<unknown>) => {
    unsettled.set(settled, show().cursor)
    void settled.then(() => {
      unsettled.delete(settled)
      void save()
    })
  })
  return found

  /** One at a time: of two at once, the older might be the one that lasts. */
  async function save(): Promise<void> {
    while (!isSaving && settledCursor() !== tried) {
      isSaving = true
      tried = settledCursor()
      await attempt(() => store.save(tried))
      isSaving = false
    }
  }

  /** A page that is left before a handler has settled gets the event again rather than never. */
  function settledCursor(): string | null {
    const [cursor = show().cursor] = unsettled.values()
    return cursor
  }

  /** Reports the first failure in a row: a store that is full is full for every event. */
  async function attempt<Result>(action: () => Result): Promise<Awaited<Result> | undefined> {
    try {
      const result = await action()
      isFailing = false
      return result
    } catch (error) {
      if (!isFailing) report(error)
      isFailing = true
    }
  }
}

/** Where a cursor outlives the page. The first failure in a row is reported, and the stream goes on. */
export interface CursorStore {
  /**
   * Asked once, before the first connection; nothing, or empty text, when there is no cursor. When it throws, rejects or
   * gives something else, nobody knows what the stream has missed. Without `from`, `onSync` is then called with the
   * reason `unknown-id`.
   */
  load(): string | null | undefined | Promise<string | null | undefined>
  /**
   * Told of the cursor after the handlers have run, and have settled where they return promises; `null` when there is
   * none. The next save waits for the promise that it returns, and only the latest cursor waits.
   */
  save(cursor: string | null): unknown
}

/**
 * The tab's own storage, which a reload keeps and another tab does not see. Of the streams with one key the newest saves:
 * it may be there to replace the others. If each did, all would continue where the fastest was, and the others would miss
 * events.
 */
function sessionStore(key: string): CursorStore {
  const saver = {}
  savers.set(key, saver)
  return {
    load: () => sessionStorage.getItem(key),
    // An empty one is none, and is read as such.
    save(cursor) {
      if (savers.get(key) !== saver) {
        throw invalidOption(
          "persist is 'session' for two streams of one URL, and only the newer is saved. Give a store.",
        )
      }
      sessionStorage.setItem(key, cursor ?? '')
    },
  }
}

const savers = new Map<string, object>()
