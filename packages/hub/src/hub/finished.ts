import { isAfter } from '@rejoin/protocol'
import type { Ends } from './ends.ts'
import { findOpening, framesAfter, type OpeningContext, type Start } from './opening.ts'
import type { Subscription } from './subscription.ts'

/** Whether a reader with this cursor has everything of channels that have all ended (§4.10). Never rejects. */
export async function isFinishedFor(
  context: OpeningContext & { readonly ends: Ends },
  subscription: Subscription,
  start: Start,
): Promise<boolean> {
  const { ends, live } = context
  const { channels } = subscription
  if (start.from !== 'cursor' || start.added?.length) return false
  if (!ends.knows(channels)) await ends.learn(channels)
  const end = ends.of(channels)
  // The log may have an end that the tail has yet to bring, and events before it.
  if (!end || isAfter(end, live.head)) return false
  try {
    const opening = await findOpening(context, subscription, start)
    if (!opening.ok) return false
    // The tail may have yet to bring the branch that the log is on.
    if (opening.branch.epoch !== live.branch.epoch && isAfter(opening.branch.first, live.branch.first)) return false
    for await (const some of framesAfter(context, subscription, opening.position)) {
      if ('wholeAfter' in some || some.length > 0) return false
    }
    // The log may have lost the end meanwhile.
    return ends.of(channels) === end
  } catch {
    // The log cannot be read now. A stream says so, and its reader comes back.
    return false
  }
}
