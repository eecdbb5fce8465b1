import { isPattern } from '@rejoin/protocol'
import type { Log, Window } from '../../log/contract.ts'

/**
 * `log.windows`, with at most one read of each pattern under way. The log reads every channel below a pattern, and there may be a
 * million of them. So readers that ask at the same time share one read.
 *
 * A shared answer may be as old as the read took. If events were trimmed meanwhile, the replay finds the gap, as it does for
 * events that are trimmed right after an answer.
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
