import { covers, isPattern, type Position, type RetainedEvent } from '@rejoin/protocol'
import type { Log } from '../log/contract.ts'

/**
 * The newest event of each key that these channels retain, as `sync-required` carries them; undefined when none of them
 * retains anything, or when they are too many to be sent, or cannot be read: the reader is told of the gap all the same.
 */
export async function retainedEvents(
  log: Pick<Log, 'retained'>,
  retain: readonly string[],
  names: readonly string[],
  idOf: (position: Position) => string,
): Promise<readonly RetainedEvent[] | undefined> {
  const retaining = names.filter((name) =>
    retain.some((kept) => covers(kept, name) || (isPattern(name) && covers(name, kept))),
  )
  if (retaining.length === 0) return undefined
  const events = await log.retained(retaining).catch(() => undefined)
  return events?.map(({ channel, key = '', type, data, position }) => ({
    id: idOf(position),
    channel,
    key,
    type,
    data,
  }))
}
