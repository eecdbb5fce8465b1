/**
 * Tells what happens to the page. `wake`: the page or the network is back, so a stream that waits need not wait any
 * longer. `hide`: nobody sees the page. `thaw`: the page is no longer frozen, whether it is seen or not. Does nothing
 * where these events do not exist.
 *
 * A page that the browser keeps for the back button always counts as hidden. Its connections would be missing for the
 * next page of the tab (six to a host, with HTTP/1.1), and Chromium never reads on from them.
 *
 * @param pauseWhenHidden - whether a hidden tab gets `hide`. Without it, a hidden tab gets neither `hide` nor `wake`:
 * of twenty open tabs only one is seen, and the others need not hurry.
 * @param signal - removes the listeners
 */
export function onWake(
  tell: (what: 'wake' | 'hide' | 'thaw') => void,
  pauseWhenHidden: boolean | undefined,
  signal: AbortSignal,
): void {
  const check = () => (isHidden() ? pauseWhenHidden && tell('hide') : tell('wake'))
  const listeners: Record<string, (event: PageTransitionEvent) => unknown> = {
    online: check,
    visibilitychange: check,
    // Also in a hidden tab: nothing else would open the connection again that was dropped when the page was left.
    pageshow: pauseWhenHidden ? check : () => tell('wake'),
    pagehide: ({ persisted }) => persisted && tell('hide'),
    resume: () => tell('thaw'),
  }
  for (const type in listeners) {
    // Capture, because `resume`, the end of a freeze, is an event of the document and does not bubble.
    globalThis.addEventListener?.(type, listeners[type] as EventListener, { signal, capture: true })
  }
}

export function isHidden(): boolean {
  return globalThis.document?.visibilityState === 'hidden'
}
