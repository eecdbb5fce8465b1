import { covers, type Position, type RetainedEvent } from '@rejoin/protocol'
import type { Log, LogEvent } from '../../log/contract.ts'

/**
 * The newest event of each key that these channels retain, as `sync-required` carries them. Undefined when the channels retain
 * nothing, or when the events are too many or cannot be read. The gap is announced all the same.
 *
 * A log may have to look at every channel below a pattern, so readers that ask at the same time share a read. The shared read
 * begins after all of them have noted their positions. An earlier read could miss an event that came before a reader's position.
 */
export type RetainedEvents = (selectors: readonly string[]) => Promise<readonly RetainedEvent[] | undefined>

export function createRetainedEvents(
  log: Pick<Log, 'retained'>,
  retain: readonly string[],
  idOf: (position: Position) => string,
): RetainedEvents {
  const underWay = new Map<string, Look>()

  function readRetained(selectors: readonly string[]): Promise<Retained> {
    const key = selectors.join('\n')
    const now = underWay.get(key)
    if (now) {
      // The read under way may miss a recent event, so this reader shares the next one.
      now.next ??= now.done.then(() => readRetained(selectors))
      return now.next
    }
    const done = log.retained(selectors).catch(() => undefined)
    const begun: Look = { done }
    underWay.set(key, begun)
    void done.then(() => underWay.delete(key))
    return done
  }

  return async (selectors) => {
    const retaining = narrowed(selectors, retain)
    if (retaining.length === 0) return undefined
    const events = await readRetained(retaining)
    return events?.map(({ channel, key = '', type, data, content, position }) => ({
      id: idOf(position),
      channel,
      key,
      type,
      data,
      ...(content && { content }),
    }))
  }
}

type Retained = readonly LogEvent[] | undefined

interface Look {
  readonly done: Promise<Retained>
  next?: Promise<Retained>
}

/** The channels and patterns of which something may be retained: of `*`, only `prices/*` when that is what the hub retains. */
function narrowed(selectors: readonly string[], retain: readonly string[]): string[] {
  const both = selectors.flatMap((selector) =>
    retain.flatMap((kept) => (covers(kept, selector) ? [selector] : covers(selector, kept) ? [kept] : [])),
  )
  const parts = [...new Set(both)].sort()
  return parts.filter((selector) => !parts.some((other) => other !== selector && covers(other, selector)))
}
