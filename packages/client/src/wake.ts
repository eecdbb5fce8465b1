/**
 * Calls back when the network, the page or the tab has come back: whoever was waiting for a retry, or was asleep, need
 * not wait longer. Does nothing where these events do not exist.
 * @returns what ends it
 */
export function onWake(callback: () => void): () => void {
  const page = globalThis.document
  const onVisibility = () => {
    if (page.visibilityState === 'visible') callback()
  }
  globalThis.addEventListener?.('online', callback)
  globalThis.addEventListener?.('pageshow', callback)
  page?.addEventListener('visibilitychange', onVisibility)
  return () => {
    globalThis.removeEventListener?.('online', callback)
    globalThis.removeEventListener?.('pageshow', callback)
    page?.removeEventListener('visibilitychange', onVisibility)
  }
}
