/**
 * Calls back when the network, the page or the tab has come back: whoever was waiting for a retry, or was asleep, need
 * not wait longer. A hidden tab does not hurry: of twenty that are open, one is looked at. Does nothing where these
 * events do not exist.
 * @param onHidden - called when the tab is hidden
 * @param onThaw - called when the tab is no longer frozen, hidden or not
 * @param signal - ends it
 */
export function onWake(callback: () => void, onHidden: () => void, onThaw: () => void, signal: AbortSignal): void {
  const look = () => (isHidden() ? onHidden() : callback())
  // Those of the document are caught on their way to it: the end of a freeze (`resume`) does not bubble.
  const listeners = { online: look, pageshow: look, visibilitychange: look, resume: onThaw }
  for (const type in listeners) {
    globalThis.addEventListener?.(type, listeners[type as keyof typeof listeners], { signal, capture: true })
  }
}

export function isHidden(): boolean {
  return globalThis.document?.visibilityState === 'hidden'
}
