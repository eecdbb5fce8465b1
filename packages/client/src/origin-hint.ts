import type { Off } from './handler-set.ts'
import type { StreamState } from './stream-state.ts'

/**
 * Warns on the console, once, why a page of another origin may get no answer. The browser hides the reason: to the
 * page, a hub that does not list its origin looks like a hub that is not there. For development only.
 *
 * @param origin - of the hub
 * @param onState - tells of changes of the stream's state
 * @param isAsking - whether the page's own `token` or `headers` has not answered yet, so that no request was sent
 */
export function hintAtOrigin(
  { origin }: URL,
  onState: (handler: (state: StreamState) => void) => Off,
  isAsking: () => boolean,
): void {
  const { location } = globalThis as { location?: { origin: string } }
  if (!location || location.origin === origin) return
  const off = onState(({ state, attempt }) => {
    if (state !== 'backoff' || attempt < 1) {
      if (state === 'connected' || state === 'closed') off()
      return
    }
    if (isAsking()) return
    off()
    console.warn(
      `${origin} gave no answer that this page may read. If the hub runs, it may not list the origin of this page: ` +
        `start it with --cors-origin ${location.origin}, or add the origin to access.cors.`,
    )
  })
}
