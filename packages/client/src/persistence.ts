import { invalidOption } from './address.ts'
import type { Clock } from './clock.ts'
import { type Handler, report } from './handler-set.ts'
import { promiseNews } from './handlers.ts'
import { isCursor } from './request.ts'
import type { StreamState } from './stream-state.ts'

/**
 * Keeps the cursor of a stream beyond the page. Reports the errors of the store.
 *
 * @param key - the key of the cursor in `sessionStorage`
 * @param subscribe - calls back when the cursor has changed
 * @returns the stored cursor, `null` when there is none, `undefined` when the store failed
 */
export async function persistCursor(
  persist: 'session' | CursorStore,
  key: string,
  show: () => StreamState,
  subscribe: (listener: () => void) => unknown,
  on: (kind: string, handler: Handler<never>) => unknown,
  clock: Clock,
): Promise<string | null | undefined> {
  const store = persist === 'session' ? sessionStore(key, show) : persist
  // Promises of handlers that have not settled, oldest first, each with the cursor before its event.
  const unsettled = new Map<Promise<unknown>, string | null>()
  let isFailing = false
  let isSaving = false
  const kept = await new Promise((resolve) => attempt('load', async () => (await store.load()) || null, resolve))
  const found = kept === null || (typeof kept === 'string' && isCursor(kept)) ? kept : undefined
  let tried: string | null | undefined = found ?? null
  subscribe(save)
  on(promiseNews, (settled: Promise<unknown>) => {
    unsettled.set(settled, show().cursor)
    void settled.then(() => {
      unsettled.delete(settled)
      save()
    })
  })
  return found

  /** Saves one cursor at a time: of two saves at once, the older cursor might be the one that stays. */
  function save(): void {
    // A page that is left before a handler has settled gets the event again, instead of losing it.
    const [cursor = show().cursor] = unsettled.values()
    if (isSaving || cursor === tried) return
    isSaving = true
    tried = cursor
    void attempt(
      'save',
      () => store.save(cursor),
      () => {
        isSaving = false
        // A later save has overtaken this one, which may have overwritten the later cursor. So that cursor is saved
        // again.
        if (cursor !== tried) tried = undefined
        save()
      },
    )
  }

  /**
   * Reports only the first failure in a row: a store that is full fails at every event.
   *
   * @param then - called when the store has answered, or after 10 s: a promise that never settles must block neither
   * the stream nor the next save
   */
  async function attempt(what: string, action: () => unknown, then: (result?: unknown) => void): Promise<void> {
    const timer = clock.setTimeout(() => {
      report(invalidOption(`persist.${what} takes over 10 s. Let it settle.`))
      then()
    }, 10_000)
    let result: unknown
    try {
      result = await action()
      isFailing = false
    } catch (error) {
      if (!isFailing) report(error)
      isFailing = true
    }
    clock.clearTimeout(timer)
    then(result)
  }
}

/** Stores a cursor beyond the page. Of several failures in a row the first is reported; the stream goes on. */
export interface CursorStore {
  /**
   * Called once, before the first connection. Return nothing or empty text when there is no cursor. When it throws,
   * rejects, returns something else or takes over 10 s, nobody knows which events the stream has missed. Without
   * `from`, `onSync` is then called with the reason `unknown-id`.
   */
  load(): string | null | undefined | Promise<string | null | undefined>
  /**
   * Called with the cursor after the handlers have run and their promises have settled; `null` when there is no cursor.
   * The next save waits for the returned promise, for at most 10 s. Only the latest cursor waits; older ones are
   * skipped.
   */
  save(cursor: string | null): unknown
}

/**
 * The tab's own storage, which survives a reload and is hidden from other tabs. Of the streams with one key, only the
 * newest saves, because it may have replaced the others. If all saved, all would continue at the cursor of the fastest,
 * and the slower ones would miss events.
 */
function sessionStore(key: string, show: () => StreamState): CursorStore {
  const saver = {}
  savers.set(key, saver)
  return {
    load: () => sessionStorage.getItem(key),
    // `load` takes empty text as no cursor.
    save(cursor) {
      if (savers.get(key) !== saver) {
        // A handler has settled after its stream was replaced.
        if (show().state === 'closed') return
        throw invalidOption(
          "persist is 'session' for two streams of one URL, and only the newer is saved. Give a store.",
        )
      }
      sessionStorage.setItem(key, cursor ?? '')
    },
  }
}

const savers = new Map<string, object>()
