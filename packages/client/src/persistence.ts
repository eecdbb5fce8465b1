import { invalidOption } from './address.ts'
import type { Clock } from './clock.ts'
import { type Handler, report } from './handler-set.ts'
import { promiseNews } from './handlers.ts'
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
  clock: Clock,
): Promise<string | null | undefined> {
  const store = persist === 'session' ? sessionStore(key) : persist
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

  /** One at a time: of two at once, the older might be the one that lasts. */
  function save(): void {
    // A page that is left before a handler has settled gets the event again rather than never.
    const [cursor = show().cursor] = unsettled.values()
    if (isSaving || cursor === tried) return
    isSaving = true
    tried = cursor
    void attempt(
      'save',
      () => store.save(cursor),
      () => {
        isSaving = false
        // Another save has overtaken this one, which may have replaced a later cursor.
        if (cursor !== tried) tried = undefined
        save()
      },
    )
  }

  /**
   * Reports the first failure in a row: a store that is full is full for every event.
   *
   * @param then - called when the store has answered, and after 10 s already: a promise that never settles must hold up
   * neither the stream nor the next save
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

/** Where a cursor outlives the page. The first failure in a row is reported, and the stream goes on. */
export interface CursorStore {
  /**
   * Asked once, before the first connection; nothing, or empty text, when there is no cursor. When it throws,
   * rejects, gives something else or takes over 10 s, nobody knows what the stream has missed. Without `from`, `onSync` is
   * then called with the reason `unknown-id`.
   */
  load(): string | null | undefined | Promise<string | null | undefined>
  /**
   * Told of the cursor after the handlers have run, and have settled where they return promises; `null` when there is
   * none. The next save waits for the promise that it returns, for at most 10 s, and only the latest cursor waits.
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
