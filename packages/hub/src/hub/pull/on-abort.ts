/**
 * Calls `listener` when the signal is aborted, until the returned function is called. However many streams of a program end
 * by one signal, it has one listener of ours: Node warns of a leak at the eleventh.
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
  // Wrapped, because the same function may be given twice and is to be forgotten once.
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
