import { isPattern, prefixOf } from '@rejoin/protocol'
import { type LogEvent, retainLimits } from '../contract.ts'
import { inOnePiece } from '../retained.ts'
import { channelKey, retainedRange } from './keys.ts'
import { channelsUnder } from './patterns.ts'
import { openRetained } from './retained.ts'
import { type ChannelState, openChannelState } from './state.ts'
import type { Store } from './store.ts'

/**
 * What channels and patterns retain. Undefined when it cannot be told: rather none than some, when one is damaged, because
 * they are taken for all there are.
 */
export function readRetained(store: Store, names: readonly string[]): readonly LogEvent[] | undefined {
  const found: LogEvent[] = []
  for (const { channel, state } of names.flatMap((name) => retaining(store, name))) {
    // Nobody knows what it retained.
    if (!state) return undefined
    const before = found.length
    const { start, end } = retainedRange(state.number)
    for (const { key, value } of store.range(start, end)) {
      const event = openRetained(key, value, channel)
      if (event) found.push(event)
    }
    if (found.length - before !== state.retained?.keys || found.length > retainLimits.keys) return undefined
  }
  return inOnePiece(found)
}

/** A channel with its state, undefined where that is damaged. */
interface Entry {
  readonly channel: string
  readonly state: ChannelState | undefined
}

/** The channels that retain anything, and those whose entry is damaged. */
function retaining(store: Store, name: string): Entry[] {
  const entries: Entry[] = []
  for (const { channel, state } of entriesOf(store, name)) {
    if (!state || state.retained?.keys) entries.push({ channel, state })
  }
  return entries
}

function entriesOf(store: Store, name: string): Iterable<Entry> {
  if (isPattern(name)) return channelsUnder(store, prefixOf(name))
  const key = channelKey(name)
  const sealed = store.get(key)
  return sealed ? [{ channel: name, state: openChannelState(key, sealed) }] : []
}
