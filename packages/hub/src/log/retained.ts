import { comparePositions, RejoinError } from '@rejoin/protocol'
import { type LogEvent, type NewEvent, retainLimits } from './contract.ts'

/** How much one channel retains, or would. */
export interface RetainedSize {
  keys: number
  bytes: number
}

/** What an event counts against the limit of what its channel retains. */
export function retainedCost({ key = '', type, data }: NewEvent): number {
  return key.length + type.length + data.length
}

export function isOverLimit({ keys, bytes }: RetainedSize): boolean {
  return keys > retainLimits.keys || bytes > retainLimits.bytes
}

/**
 * Why these entries cannot be appended, undefined when they can: with them, a channel would retain too much.
 *
 * @param sizeOf - what the channel retains now
 * @param retainedAt - its event of a key
 */
export function refuseRetaining(
  entries: readonly NewEvent[],
  sizeOf: (channel: string) => RetainedSize,
  retainedAt: (channel: string, key: string) => NewEvent | undefined,
): RejoinError | undefined {
  const keyed = entries.filter((entry) => entry.key !== undefined)
  for (const channel of new Set(keyed.map((entry) => entry.channel))) {
    const { keys, bytes } = sizeOf(channel)
    const size = { keys, bytes }
    const changed = new Map<string, NewEvent | undefined>()
    for (const entry of keyed) {
      if (entry.channel !== channel) continue
      const key = entry.key as string
      const before = changed.has(key) ? changed.get(key) : retainedAt(channel, key)
      const after = entry.forget ? undefined : entry
      size.keys += (after ? 1 : 0) - (before ? 1 : 0)
      size.bytes += (after ? retainedCost(after) : 0) - (before ? retainedCost(before) : 0)
      changed.set(key, after)
    }
    if (isOverLimit(size)) return tooMuch(channel)
  }
  return undefined
}

/** All of them in order, undefined when they are too many to be sent in one piece. */
export function inOnePiece(events: Iterable<LogEvent>): LogEvent[] | undefined {
  const size = { keys: 0, bytes: 0 }
  const taken: LogEvent[] = []
  for (const event of events) {
    size.keys += 1
    size.bytes += retainedCost(event)
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
