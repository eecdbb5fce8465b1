/**
 * Tells of what happens to the page: it is back, or the network is (`wake`), and who was waiting or asleep need not wait
 * longer; nobody sees it (`hide`); it is no longer frozen, seen or not (`thaw`). Does nothing where these events do not
 * exist.
 *
 * A page that the browser keeps for the back button is hidden for everybody: what it holds open there, the next page of
 * the tab lacks (six connections to a host, with HTTP/1.1), and Chromium never reads on from it.
 *
 * @param pauseWhenHidden - whether `hide` is told of tabs, too. A hidden tab otherwise hears neither of the two: of twenty
 * that are open, one is looked at, and the others need not hurry.
 * @param signal - ends it
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
    // Also in a hidden tab: nothing else would bring back what was let go of when the page was left.
    pageshow: pauseWhenHidden ? check : () => tell('wake'),
    pagehide: ({ persisted }) => persisted && tell('hide'),
    resume: () => tell('thaw'),
  }
  for (const type in listeners) {
    // Those of the document are caught on their way to it: the end of a freeze (`resume`) does not bubble.
    globalThis.addEventListener?.(type, listeners[type] as EventListener, { signal, capture: true })
  }
}

export function isHidden(): boolean {
  return globalThis.document?.visibilityState === 'hidden'
}
