import type { LogEvent } from '../../contract.ts'
import type { Store } from '../files/store.ts'
import { channelKey, retainedKey } from '../format/keys.ts'
import { openRetained } from '../format/record.ts'
import { type ChannelState, openChannelState } from '../format/state.ts'

/**
 * The stored state of channels, looked up once each. A commit asks for the same channel several times: without this, a batch
 * over a thousand channels would search the file four thousand times within one turn, and not a thousand times.
 */
export interface StoredChannels {
  channel(name: string): StoredChannel
  /** The event that a channel retains under a key. */
  value(name: string, channelNumber: number, key: string): LogEvent | 'damaged' | undefined
}

export interface StoredChannel {
  readonly key: Buffer
  readonly isStored: boolean
  /** Undefined when the channel has no entry, or a damaged one. */
  readonly state: ChannelState | undefined
}

export function createStoredChannels(store: Store): StoredChannels {
  const channels = new Map<string, StoredChannel>()
  // By channel and key. Most channels retain nothing.
  const values = new Map<string, Map<string, LogEvent | 'damaged' | undefined>>()

  function readValue(name: string, channelNumber: number, key: string): LogEvent | 'damaged' | undefined {
    const storeKey = retainedKey(channelNumber, key)
    const sealed = store.get(storeKey)
    return sealed && (openRetained(storeKey, sealed, name) ?? 'damaged')
  }

  return {
    channel(name) {
      let found = channels.get(name)
      if (!found) {
        const key = channelKey(name)
        const sealed = store.get(key)
        found = { key, isStored: sealed !== undefined, state: sealed && openChannelState(key, sealed) }
        channels.set(name, found)
      }
      return found
    },
    value(name, channelNumber, key) {
      const known = values.get(name) ?? new Map<string, LogEvent | 'damaged' | undefined>()
      values.set(name, known)
      if (!known.has(key)) known.set(key, readValue(name, channelNumber, key))
      return known.get(key)
    },
  }
}
