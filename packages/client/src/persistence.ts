import { callHandler } from './handler-set.ts'

/**
 * Keeps the place of a stream beyond the page.
 *
 * @param key - what 'session' stores it under
 * @returns the place that was kept, if any
 */
export async function persistCursor(
  persist: 'session' | CursorStore,
  key: string,
  cursorOf: () => string | null,
  subscribe: (listener: () => void) => unknown,
): Promise<string | null | undefined> {
  const store = persist === 'session' ? sessionStore(key) : persist
  let saved = await store.load()
  subscribe(() => {
    const cursor = cursorOf()
    if (cursor !== saved) void callHandler(() => store.save(cursor), undefined)
    saved = cursor
  })
  return saved
}

/** Where a cursor outlives the page. What it throws, or rejects with, is reported, and the stream goes on without. */
export interface CursorStore {
  /** Asked once, before the first connection. */
  load(): string | null | undefined | Promise<string | null | undefined>
  /** Told after the handlers have run, once for all events that arrived together; `null` when there is no place. */
  save(cursor: string | null): unknown
}

/** The tab's own storage, which a reload keeps and another tab does not see. */
function sessionStore(key: string): CursorStore {
  return {
    load: () => sessionStorage.getItem(key),
    // An empty one is none, and is read as such.
    save: (cursor) => sessionStorage.setItem(key, cursor ?? ''),
  }
}
