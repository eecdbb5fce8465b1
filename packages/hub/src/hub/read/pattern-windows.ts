import { isPattern } from '@rejoin/protocol'
import type { Log, Window } from '../../log/contract.ts'

/**
 * The log's windows, with one read of a pattern under way at a time. The log reads every channel below a pattern, and
 * there may be a million: readers that come together share the read, or each of them would cost as much again.
 *
 * An answer may be as old as the read is long. What was trimmed meanwhile is found by the read that follows, as it is when
 * it is trimmed right after the answer.
 */
export function sharedWindows(log: Pick<Log, 'windows'>): (selectors: readonly string[]) => Promise<readonly Window[]> {
  const underWay = new Map<string, Promise<Window>>()

  function readWindow(pattern: string): Promise<Window> {
    let looking = underWay.get(pattern)
    if (!looking) {
      looking = log
        .windows([pattern])
        .then(([window]) => window as Window)
        .finally(() => underWay.delete(pattern))
      underWay.set(pattern, looking)
    }
    return looking
  }

  return async (selectors) => {
    const channels = selectors.filter((selector) => !isPattern(selector))
    const [known, ...patterns] = await Promise.all([
      channels.length > 0 ? log.windows(channels) : [],
      ...selectors.filter(isPattern).map(readWindow),
    ])
    const byName = new Map([...known, ...patterns].map((window) => [window.channel, window]))
    return selectors.map((selector) => byName.get(selector) as Window)
  }
}
