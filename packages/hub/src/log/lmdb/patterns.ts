import { isAfter, isPattern, type Position, prefixOf } from '@rejoin/protocol'
import { findNews } from './feed.ts'
import { afterChannels, channelKey, channelOf } from './keys.ts'
import { type ChannelState, type LogState, openChannelState } from './state.ts'
import type { Store } from './store.ts'

/** The channels to be read for what was asked for, each with the name that asked for it, and how far that is good. */
export interface Asked {
  readonly channels: readonly { readonly name: string; readonly channel: string }[]
  readonly through: Position
}

/** Channels stand for themselves, patterns for their channels that have news. */
export function findChannels(
  store: Store,
  state: LogState,
  names: readonly string[],
  { after, through, events }: { after: Position; through: Position; events: number },
): Asked {
  const channels: { name: string; channel: string }[] = []
  let end = through
  for (const name of names) {
    if (!isPattern(name)) {
      channels.push({ name, channel: name })
      continue
    }
    const prefix = prefixOf(name)
    const news = findNews(store, state, { prefix, after, through: end, events }) ?? {
      channels: changedSince(store, prefix, after),
      through: end,
    }
    for (const channel of news.channels) channels.push({ name, channel })
    end = news.through
  }
  return { channels, through: end }
}

/** Where the feed does not reach back: by a look at each. One whose entry is damaged may have changed. */
function changedSince(store: Store, prefix: string, after: Position): string[] {
  const changed: string[] = []
  for (const { channel, state } of channelsUnder(store, prefix)) {
    if (!state || isAfter(state.newest, after)) changed.push(channel)
  }
  return changed
}

/** Every channel that starts with `prefix`, with its state as it is stored, undefined where it is damaged. */
export function* channelsUnder(
  store: Store,
  prefix: string,
  from = channelKey(prefix),
): Generator<{ key: Buffer; channel: string; state: ChannelState | undefined }> {
  for (const { key, value } of store.range(from, afterChannels)) {
    const channel = channelOf(key)
    if (!channel.startsWith(prefix)) return
    yield { key, channel, state: openChannelState(key, value) }
  }
}
