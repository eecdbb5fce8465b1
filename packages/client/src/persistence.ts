import { callHandler } from './handler-set.ts'
import { invalidOption } from './invalid-option.ts'
import type { StreamState } from './stream-state.ts'

/**
 * Keeps the place of a stream beyond the page.
 *
 * @param key - what 'session' stores it under
 * @returns the place that was kept, if any
 * @throws RejoinError `invalid-option`, when another stream of this page keeps its place there
 */
export async function persistCursor(
  persist: 'session' | CursorStore,
  key: string,
  show: () => StreamState,
  subscribe: (listener: () => void) => unknown,
): Promise<string | null | undefined> {
  if (show().state === 'closed') return
  if (persist === 'session') claim(key, show, subscribe)
  const store = persist === 'session' ? sessionStore(key) : persist
  let saved = await store.load()
  subscribe(() => {
    const { cursor } = show()
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

/** Two streams that save under one key would both continue where the faster one was, and the other would miss events. */
function claim(key: string, show: () => StreamState, subscribe: (listener: () => void) => unknown): void {
  if (keysInUse.has(key)) {
    throw invalidOption("persist is 'session' for two streams of one URL. Give one of them a store of its own.")
  }
  keysInUse.add(key)
  subscribe(() => show().state === 'closed' && keysInUse.delete(key))
}

const keysInUse = new Set<string>()

/** The tab's own storage, which a reload keeps and another tab does not see. */
function sessionStore(key: string): CursorStore {
  return {
    load: () => sessionStorage.getItem(key),
    // An empty one is none, and is read as such.
    save: (cursor) => sessionStorage.setItem(key, cursor ?? ''),
  }
}
