import { useSyncExternalStore } from 'react'

/** A value that is replaced as a whole. The page is drawn again when the value changes. */
export interface Store<Value> {
  subscribe(listener: () => void): () => void
  getSnapshot(): Value
}

export interface WritableStore<Value> extends Store<Value> {
  set(value: Value): void
}

export function createStore<Value>(initial: Value): WritableStore<Value> {
  const listeners = new Set<() => void>()
  let value = initial
  return {
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    getSnapshot: () => value,
    set(next) {
      value = next
      for (const listener of listeners) listener()
    },
  }
}

export function useStore<Value>({ subscribe, getSnapshot }: Store<Value>): Value {
  return useSyncExternalStore(subscribe, getSnapshot)
}
