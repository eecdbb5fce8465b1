import { checkSelector, checkType, covers, isPattern, RejoinError } from '@rejoin/protocol'
import { Generations } from '../../generations.ts'
import type { Shape } from './shape.ts'

/** What a reader asked for, in a canonical form. Readers with equal subscriptions share their bytes. */
export interface Subscription {
  /** Channels and patterns, sorted, none covered by another, at least one. */
  readonly channels: readonly string[]
  /** Only events of these types are sent; undefined sends all. */
  readonly types: ReadonlySet<string> | undefined
  /** What the frames have besides the event; undefined for nothing. */
  readonly shape: Shape | undefined
  /** Equal for equal subscriptions. */
  readonly key: string
}

// Every read and every join walks through all channels of a subscription.
const maxChannels = 100

export function createSubscription(
  channels: readonly string[],
  types: readonly string[] = [],
  shape?: Shape,
): Subscription {
  // Most readers have one channel, and a popular channel has thousands of them. They share the object.
  const [only] = channels
  if (only === undefined || channels.length > 1 || types.length > 0 || shape) return create(channels, types, shape)
  const known = ofOneChannel.get(only)
  if (known) return known
  const created = create(channels, types, shape)
  ofOneChannel.setAtMost(maxKnown, only, created)
  return created
}

const ofOneChannel = new Generations<Subscription>()
// Half a megabyte at most.
const maxKnown = 1000

function create(channels: readonly string[], types: readonly string[], shape: Shape | undefined): Subscription {
  if (channels.length === 0 || channels.length > maxChannels) {
    throw new RejoinError(
      `A subscription has 1 to ${maxChannels} channels, not ${channels.length}. Name them as /events/<channel> or ?channel=.`,
      { code: 'invalid-channel' },
    )
  }
  const sortedChannels = withoutCovered([...new Set(channels.map(checkSelector))]).sort()
  const sortedTypes = [...new Set(types.map(checkType))].sort()
  return {
    channels: sortedChannels,
    types: sortedTypes.length === 0 ? undefined : new Set(sortedTypes),
    shape,
    key: JSON.stringify([sortedChannels, sortedTypes, shape]),
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
