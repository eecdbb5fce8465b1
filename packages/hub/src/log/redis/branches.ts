import { type Branch, type Epoch, type History, isAfter, origin, type Position } from '@rejoin/protocol'
import { parsePlace } from './entry.ts'

/** As the script gives them: epoch, number, first place, the fork or a dash, and how far past it the loss is on record. */
export function parseBranches(lines: readonly string[]): History {
  return lines.map((line) => {
    const [epoch = '', number = '', first = '', fork = '-', reported = ''] = line.split(' ')
    const branch: Branch = { epoch, number: Number(number), first: parsePlace(first) }
    if (fork === '-') return branch
    const forked = { ...branch, fork: parsePlace(fork) }
    return reported === '' ? forked : { ...forked, reported: parsePlace(reported) }
  })
}

/**
 * The history a hub goes on with, from the one it knew and the one that is stored now. A log that does not know the hub's
 * branches is another one in the same place: Redis was emptied. Nothing of what the hub knew has survived then, but its
 * readers still stand there and have to be told, so the old branches stay, and the new log forks off at the origin.
 */
export function mergeHistories(known: History, stored: History): History {
  const [oldest, ...later] = stored
  if (!oldest || known.length === 0) return stored
  const at = known.findIndex((branch) => branch.epoch === oldest.epoch)
  if (at === -1) return [...known, { ...oldest, fork: origin }, ...later]
  return [...known.slice(0, at + 1), ...later]
}

/**
 * The first place of the log that is stored: what a hub remembers from before it is of another one.
 *
 * @param oldest - the epoch of its first branch
 */
export function baseOf(history: History, oldest: Epoch): Position {
  const start = history.find(({ epoch }) => epoch === oldest)
  return start?.fork ? start.first : origin
}

/**
 * Where a place that was reached on a branch got lost: the first later branch that forked off before it. A history that does
 * not know the branch at all has lost it by its newest at the latest.
 */
export function lostAt(history: History, epoch: string, place: Position): Branch | undefined {
  const at = history.findIndex((branch) => branch.epoch === epoch)
  if (at === -1) return history.at(-1)
  return history.slice(at + 1).find(({ fork }) => fork && isAfter(place, fork))
}
