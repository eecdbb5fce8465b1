import { covers, type Position, type RetainedEvent } from '@rejoin/protocol'
import type { Log, LogEvent } from '../../log/contract.ts'

/**
 * The newest event of each key that these channels retain, as `sync-required` carries them; undefined when none of them
 * retains anything, or when they are too many to be sent, or cannot be read: the reader is told of the gap all the same.
 *
 * A log may have to look at every channel below a pattern, so readers that come together share the read. They share one that
 * begins after all of them have noted their positions: a value that was read before would hide the event that replaced it.
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
      // Not the one under way, which may have passed what has changed since, but the one after it.
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

/** The part of these channels and patterns that may retain anything: of `*`, only what is below `prices/*`. */
function narrowed(selectors: readonly string[], retain: readonly string[]): string[] {
  const both = selectors.flatMap((selector) =>
    retain.flatMap((kept) => (covers(kept, selector) ? [selector] : covers(selector, kept) ? [kept] : [])),
  )
  const parts = [...new Set(both)].sort()
  return parts.filter((selector) => !parts.some((other) => other !== selector && covers(other, selector)))
}
