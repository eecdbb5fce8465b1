/**
 * Calls back when the network, the page or the tab has come back: whoever was waiting for a retry, or was asleep, need
 * not wait longer. A hidden tab does not hurry: of twenty that are open, one is looked at. Does nothing where these
 * events do not exist.
 * @param onHidden - called when the tab is hidden
 * @param signal - ends it
 */
export function onWake(callback: () => void, onHidden: () => void, signal: AbortSignal): void {
  // Those of the document are caught on their way to it: the end of a freeze (`resume`) does not bubble.
  for (const type of ['online', 'pageshow', 'visibilitychange', 'resume']) {
    globalThis.addEventListener?.(type, () => (isHidden() ? onHidden() : callback()), { signal, capture: true })
  }
}

export function isHidden(): boolean {
  return globalThis.document?.visibilityState === 'hidden'
}
