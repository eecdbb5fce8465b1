import { checkName, checkType, covers, isPattern, RejoinError } from '@rejoin/protocol'
import type { Shape } from './shape.ts'

/** What one reader asked for, in one canonical form, so that readers who asked for the same share their bytes. */
export interface Subscription {
  /** Channels and patterns, sorted, none covered by another, at least one. */
  readonly channels: readonly string[]
  /** Only events of these types are sent; undefined sends all. */
  readonly types: ReadonlySet<string> | undefined
  /** What its frames say besides the event; undefined for nothing. */
  readonly shape: Shape | undefined
  /** Equal for equal subscriptions. */
  readonly key: string
}

// A connection's channels are walked on every read and every join.
const maxChannels = 100

export function createSubscription(
  channels: readonly string[],
  types: readonly string[] = [],
  shape?: Shape,
): Subscription {
  if (channels.length === 0 || channels.length > maxChannels) {
    throw new RejoinError(
      `A subscription has 1 to ${maxChannels} channels, not ${channels.length}. Name them as /events/<channel> or ?channel=.`,
      { code: 'invalid-channel' },
    )
  }
  const sortedChannels = withoutCovered([...new Set(channels.map(checkName))]).sort()
  const sortedTypes = [...new Set(types.map(checkType))].sort()
  return {
    channels: sortedChannels,
    types: sortedTypes.length === 0 ? undefined : new Set(sortedTypes),
    shape,
    key: JSON.stringify([sortedChannels, sortedTypes, shape]),
  }
}

/** An event that came under two names would be sent twice. */
function withoutCovered(names: readonly string[]): string[] {
  const patterns = names.filter(isPattern)
  return names.filter((name) => !patterns.some((pattern) => pattern !== name && covers(pattern, name)))
}

export function wants(subscription: Subscription, event: { readonly type: string }): boolean {
  return subscription.types === undefined || subscription.types.has(event.type)
}
