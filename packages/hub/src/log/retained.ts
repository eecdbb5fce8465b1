import { comparePositions, RejoinError } from '@rejoin/protocol'
import { type LogEvent, type NewEvent, retainLimits } from './contract.ts'
import { retainedBytes } from './event-bytes.ts'

/** How much one channel retains, or would retain after an append. */
export interface RetainedSize {
  keys: number
  bytes: number
}

function isOverLimit({ keys, bytes }: RetainedSize): boolean {
  return keys > retainLimits.keys || bytes > retainLimits.bytes
}

/**
 * The rejection of entries with which a channel would retain too much; undefined when they can be appended.
 *
 * @param sizeOf - how much the channel retains now
 * @param retainedAt - the event that the channel retains under a key
 */
export function rejectRetaining(
  entries: readonly NewEvent[],
  sizeOf: (channel: string) => RetainedSize,
  retainedAt: (channel: string, key: string) => NewEvent | undefined,
): RejoinError | undefined {
  // Most appends retain nothing. A map for each of them would take longer than to look.
  if (!entries.some(isKeyed)) return undefined
  const changed = new Map<string, ChannelChange>()
  // One pass over the entries, not one for each channel: a batch may have a thousand channels with one entry each.
  for (const entry of entries) {
    const { channel, key } = entry
    if (key === undefined) continue
    let change = changed.get(channel)
    if (!change) {
      change = { size: { ...sizeOf(channel) }, values: new Map() }
      changed.set(channel, change)
    }
    const { size, values } = change
    const before = values.has(key) ? values.get(key) : retainedAt(channel, key)
    const after = entry.forget ? undefined : entry
    size.keys += (after ? 1 : 0) - (before ? 1 : 0)
    size.bytes += (after ? retainedBytes(after) : 0) - (before ? retainedBytes(before) : 0)
    values.set(key, after)
  }
  for (const [channel, { size }] of changed) if (isOverLimit(size)) return tooMuch(channel)
  return undefined
}

function isKeyed({ key }: NewEvent): boolean {
  return key !== undefined
}

interface ChannelChange {
  readonly size: RetainedSize
  /** The event of each key after the entries so far; undefined for a key that was forgotten. */
  readonly values: Map<string, NewEvent | undefined>
}

/** The events in position order; undefined when they are too many to be sent in one piece. */
export function inOnePiece(events: Iterable<LogEvent>): LogEvent[] | undefined {
  const size = { keys: 0, bytes: 0 }
  const taken: LogEvent[] = []
  for (const event of events) {
    size.keys += 1
    size.bytes += retainedBytes(event)
    if (isOverLimit(size)) return undefined
    taken.push(event)
  }
  return taken.sort((a, b) => comparePositions(a.position, b.position))
}

export function tooMuch(channel: string): RejoinError {
  const { keys, bytes } = retainLimits
  return new RejoinError(
    `${channel} would retain more than ${keys} keys or ${bytes} bytes. Forget keys that are done, or use more channels.`,
    { code: 'too-large' },
  )
}
