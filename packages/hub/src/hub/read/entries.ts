import { isAfter, type Position } from '@rejoin/protocol'
import { eventBytes } from '../../log/event-bytes.ts'
import { createSubscription } from '../live/subscription.ts'
import { findOpening, type OpeningContext } from './opening.ts'

/** An event that a channel holds, without its data. */
export interface ChannelEntry {
  readonly id: string
  readonly channel: string
  readonly type: string
  /** When it was published, in milliseconds since 1970. */
  readonly at: number
  /** The bytes that it takes of the window: its type and its data in UTF-8. */
  readonly bytes: number
}

// The most that one slice of a turn reads.
const pageBytes = 256 * 1024

/** The newest events of a channel or a pattern, oldest first. */
export async function newestEntries(
  context: OpeningContext & { idOf(position: Position): string },
  selector: string,
  limit: number,
): Promise<ChannelEntry[]> {
  const { log, live, slices, idOf } = context
  const subscription = createSubscription([selector])
  const opening = await findOpening(context, subscription, { from: 'last', events: limit })
  const entries: ChannelEntry[] = []
  if (opening.kind === 'gap') return entries
  const through = live.head.position
  let after = opening.at.position
  while (entries.length < limit && isAfter(through, after)) {
    const most = { events: limit - entries.length, bytes: pageBytes }
    const page = await slices.take(() => log.read(subscription.selectors, after, through, most))
    for (const event of page.events) {
      const { channel, type, at, position } = event
      entries.push({ id: idOf(position), channel, type, at, bytes: eventBytes(event) })
    }
    // Events were trimmed or invalidated after the search. The rest begins later.
    after = page.gap?.wholeAfter ?? page.completeThrough
  }
  return entries
}
