import { checkSelector, checkType, covers, isPattern, RejoinError } from '@rejoin/protocol'
import { Generations } from '../../generations.ts'
import type { Shape } from './shape.ts'

/** What a reader asked for, in a canonical form. Readers with equal subscriptions share their bytes. */
export interface Subscription {
  /** Channels and patterns, sorted, none covered by another, at least one. */
  readonly selectors: readonly string[]
  /** Only events of these types are sent; undefined sends all. */
  readonly types: ReadonlySet<string> | undefined
  /** What the frames have besides the event; undefined for nothing. */
  readonly shape: Shape | undefined
  /** Equal for equal subscriptions. */
  readonly key: string
}

// Every read and every join walks through all selectors of a subscription.
export const maxSelectors = 100

export function createSubscription(
  selectors: readonly string[],
  types: readonly string[] = [],
  shape?: Shape,
): Subscription {
  // Most readers have one channel, and a popular channel has thousands of them. They share the object.
  const [only] = selectors
  if (only === undefined || selectors.length > 1 || types.length > 0 || shape) return create(selectors, types, shape)
  const known = ofOneChannel.get(only)
  if (known) return known
  const created = create(selectors, types, shape)
  ofOneChannel.setAtMost(maxKnown, only, created)
  return created
}

const ofOneChannel = new Generations<Subscription>()
// Half a megabyte at most.
const maxKnown = 1000

function create(selectors: readonly string[], types: readonly string[], shape: Shape | undefined): Subscription {
  if (selectors.length === 0 || selectors.length > maxSelectors) {
    throw new RejoinError(
      `A subscription has 1 to ${maxSelectors} channels, not ${selectors.length}. Name them as /events/<channel> or ?channel=.`,
      { code: 'invalid-channel' },
    )
  }
  const sortedSelectors = withoutCovered([...new Set(selectors.map(checkSelector))]).sort()
  const sortedTypes = [...new Set(types.map(checkType))].sort()
  return {
    selectors: sortedSelectors,
    types: sortedTypes.length === 0 ? undefined : new Set(sortedTypes),
    shape,
    key: JSON.stringify([sortedSelectors, sortedTypes, shape]),
  }
}

/** Removes channels that a pattern covers: their events would be sent twice. */
function withoutCovered(selectors: readonly string[]): string[] {
  const patterns = selectors.filter(isPattern)
  return selectors.filter((selector) => !patterns.some((pattern) => pattern !== selector && covers(pattern, selector)))
}

export function wants(subscription: Subscription, event: { readonly type: string }): boolean {
  return subscription.types === undefined || subscription.types.has(event.type)
}

export function wantedOf<Event extends { readonly type: string }>(
  subscription: Subscription,
  events: readonly Event[],
): readonly Event[] {
  return subscription.types === undefined ? events : events.filter((event) => wants(subscription, event))
}
