/**
 * Calls back when the network, the page or the tab has come back: whoever was waiting for a retry, or was asleep, need
 * not wait longer. A hidden tab does not hurry: of twenty that are open, one is looked at. Does nothing where these
 * events do not exist.
 * @returns what ends it
 */
export function onWake(callback: () => void): () => void {
  const ending = new AbortController()
  const { signal } = ending
  const onEvent = () => {
    if (globalThis.document?.visibilityState !== 'hidden') callback()
  }
  // A change of visibility is the document's, and bubbles.
  for (const type of ['online', 'pageshow', 'visibilitychange']) {
    globalThis.addEventListener?.(type, onEvent, { signal })
  }
  return () => ending.abort()
}
