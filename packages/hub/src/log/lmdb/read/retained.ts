import { isPattern, prefixOf } from '@rejoin/protocol'
import type { SliceQueue } from '../../../slice-queue.ts'
import { type LogEvent, retainLimits } from '../../contract.ts'
import { inOnePiece } from '../../retained.ts'
import type { Store } from '../files/store.ts'
import { channelKey, retainedRange } from '../format/keys.ts'
import { openRetained } from '../format/record.ts'
import { type ChannelState, openChannelState } from '../format/state.ts'
import { channelsUnder } from './scan.ts'

/**
 * The events that channels and patterns retain. Undefined when one of them is damaged, or when there are too many: a reader would
 * take an incomplete list for the whole state. The read looks at the channels of a pattern some at a time.
 */
export async function readRetained(
  store: Store,
  selectors: readonly string[],
  slices: SliceQueue,
): Promise<readonly LogEvent[] | undefined> {
  const found: LogEvent[] = []
  for (const selector of selectors) {
    let from: Buffer | undefined
    do {
      const start = from
      const { isWhole, next } = await slices.take(() => store.reading(() => addRetained(store, selector, start, found)))
      if (!isWhole) return undefined
      from = next
    } while (from)
  }
  return inOnePiece(found)
}

/** Adds the retained events of the next channels to `found`. `isWhole` is false when some are damaged, or too many to be sent. */
function addRetained(
  store: Store,
  name: string,
  from: Buffer | undefined,
  found: LogEvent[],
): { isWhole: boolean; next?: Buffer } {
  let looked = 0
  for (const { key, channel, state } of isPattern(name)
    ? channelsUnder(store, prefixOf(name), from)
    : one(store, name)) {
    if (looked === lookedAtATime) return { isWhole: true, next: key }
    looked += 1
    // The entry is damaged, so what the channel retains is unknown.
    if (!state) return { isWhole: false }
    if (!state.retained?.keys) continue
    const before = found.length
    const { start, end } = retainedRange(state.number)
    for (const { key, value } of store.range(start, end)) {
      const event = openRetained(key, value, channel)
      if (event) found.push(event)
    }
    if (found.length - before !== state.retained.keys || found.length > retainLimits.keys) return { isWhole: false }
  }
  return { isWhole: true }
}

const lookedAtATime = 512

function one(store: Store, channel: string): { key: Buffer; channel: string; state: ChannelState | undefined }[] {
  const key = channelKey(channel)
  const sealed = store.get(key)
  return sealed ? [{ key, channel, state: openChannelState(key, sealed) }] : []
}
