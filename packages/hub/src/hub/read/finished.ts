import { isAfter } from '@rejoin/protocol'
import type { Subscription } from '../live/subscription.ts'
import { type Ends, hasEverything } from './ends.ts'
import { findOpening, framesAfter, type OpeningContext, type Start } from './opening.ts'

/** Whether `isFinishedFor` has anything to find out. Almost every reader is spared its promises by this. */
export function mayBeFinished({ ends }: { readonly ends: Ends }, { selectors }: Subscription, start: Start): boolean {
  if (start.from !== 'cursor' || start.added?.length) return false
  return !ends.knows(selectors) || ends.of(selectors) !== undefined
}

/** Whether a reader with this cursor has everything of channels that have all ended (§4.10). Never rejects. */
export async function isFinishedFor(
  context: OpeningContext & { readonly ends: Ends },
  subscription: Subscription,
  start: Start,
): Promise<boolean> {
  const { ends, live } = context
  const { selectors } = subscription
  if (!mayBeFinished(context, subscription, start)) return false
  if (!ends.knows(selectors)) await ends.learn(selectors)
  const end = ends.of(selectors)
  // The tail may have yet to bring the end, and events before it.
  if (!hasEverything(live.head, end)) return false
  try {
    const opening = await findOpening(context, subscription, start)
    if (!opening.ok) return false
    // The tail may have yet to bring the branch that the log is on.
    if (opening.branch.epoch !== live.branch.epoch && isAfter(opening.branch.first, live.branch.first)) return false
    for await (const some of framesAfter(context, subscription, opening.position)) {
      if ('wholeAfter' in some || some.length > 0) return false
    }
    // The log may have lost the end meanwhile.
    return ends.of(selectors) === end
  } catch {
    // The log cannot be read now. The stream of this reader will say so.
    return false
  }
}
