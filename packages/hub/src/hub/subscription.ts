import { checkChannel, checkType, RejoinError } from '@rejoin/protocol'

/** What one reader asked for, in one canonical form, so that readers who asked for the same share their bytes. */
export interface Subscription {
  /** Sorted, without repeats, at least one. */
  readonly channels: readonly string[]
  /** Only events of these types are sent; undefined sends all. */
  readonly types: ReadonlySet<string> | undefined
  /** Equal for equal subscriptions. */
  readonly key: string
}

// A connection's channels are walked on every read and every join.
const maxChannels = 100

export function createSubscription(channels: readonly string[], types: readonly string[] = []): Subscription {
  if (channels.length === 0 || channels.length > maxChannels) {
    throw new RejoinError(
      `A subscription has 1 to ${maxChannels} channels, not ${channels.length}. Name them as /events/<channel> or ?channel=.`,
      { code: 'invalid-channel' },
    )
  }
  const sortedChannels = [...new Set(channels.map(checkChannel))].sort()
  const sortedTypes = [...new Set(types.map(checkType))].sort()
  return {
    channels: sortedChannels,
    types: sortedTypes.length === 0 ? undefined : new Set(sortedTypes),
    key: JSON.stringify([sortedChannels, sortedTypes]),
  }
}

export function wants(subscription: Subscription, event: { readonly type: string }): boolean {
  return subscription.types === undefined || subscription.types.has(event.type)
}
