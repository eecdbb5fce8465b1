import type { Ends } from './ends.ts'
import { findOpening, framesAfter, type OpeningContext, type Start } from './opening.ts'
import type { Subscription } from './subscription.ts'

/** Whether a reader with this cursor has everything of channels that have all ended (§4.10). Never rejects. */
export async function isFinishedFor(
  context: OpeningContext & { readonly ends: Ends },
  subscription: Subscription,
  start: Start,
): Promise<boolean> {
  const { ends } = context
  const { channels } = subscription
  if (start.from !== 'cursor' || start.added?.length) return false
  if (!ends.knows(channels)) await ends.learn(channels)
  if (!ends.of(channels)) return false
  try {
    const opening = await findOpening(context, subscription, start)
    if (!opening.ok) return false
    for await (const _something of framesAfter(context, subscription, opening.position)) return false
    return true
  } catch {
    // The log cannot be read now. A stream says so, and its reader comes back.
    return false
  }
}
