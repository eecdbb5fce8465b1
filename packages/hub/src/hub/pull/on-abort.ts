/**
 * Calls `listener` when the signal is aborted, until the returned function is called. All streams that end by one signal share
 * one listener on it: Node warns of a leak at the eleventh.
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (!signal) return () => undefined
  let listeners = listenersOf.get(signal)
  if (!listeners) {
    listeners = new Set()
    listenersOf.set(signal, listeners)
  }
  const group = listeners
  if (group.size === 0) signal.addEventListener('abort', tellAll)
  // Wrapped, because a caller may give the same function twice, and each is removed by itself.
  const entry = () => listener()
  group.add(entry)
  return () => {
    if (group.delete(entry) && group.size === 0) signal.removeEventListener('abort', tellAll)
  }
}

const listenersOf = new WeakMap<AbortSignal, Set<() => void>>()

function tellAll(this: AbortSignal): void {
  for (const listener of [...(listenersOf.get(this) ?? [])]) listener()
}
