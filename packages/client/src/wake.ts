/**
 * Calls back when the network, the page or the tab has come back (`wake`): whoever was waiting for a retry, or was asleep,
 * need not wait longer. A hidden tab does not hurry: of twenty that are open, one is looked at. Does nothing where these
 * events do not exist.
 *
 * @param callback - also told when the tab is hidden (`hide`), and when it is no longer frozen, hidden or not (`thaw`)
 * @param signal - ends it
 */
export function onWake(callback: (what: 'wake' | 'hide' | 'thaw') => void, signal: AbortSignal): void {
  const look = () => callback(isHidden() ? 'hide' : 'wake')
  // Those of the document are caught on their way to it: the end of a freeze (`resume`) does not bubble.
  const listeners = { online: look, pageshow: look, visibilitychange: look, resume: () => callback('thaw') }
  for (const type in listeners) {
    globalThis.addEventListener?.(type, listeners[type as keyof typeof listeners], { signal, capture: true })
  }
}

export function isHidden(): boolean {
  return globalThis.document?.visibilityState === 'hidden'
}
