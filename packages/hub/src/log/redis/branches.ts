import { type Branch, type Epoch, type History, isAfter, isSame, origin, type Position } from '@rejoin/protocol'
import type { StoredFormat } from '../stored-formats.ts'
import { parsePosition } from './entry.ts'

/** What a step tells of the log. */
export interface Told {
  /** How its ids are written, for `parseFormats`. */
  readonly ids: string
  readonly history: History
}

/**
 * From the lines of an answer. They come together: an event that was rendered by the one without the other could get an id
 * that it has on no other hub.
 */
export function parseTold([ids = '', ...branches]: readonly string[]): Told {
  return { ids, history: parseBranches(branches) }
}

/** A line for each: name and sample of the codec; for all but the first, since when it holds; and its version, if it has one. */
export function parseFormats(text: string): StoredFormat[] {
  return text.split('\n').map((line) => {
    const [name = '', sample = '', since, version] = line.split(' ')
    return {
      ids: `${name} ${sample}`,
      since: since === undefined ? undefined : parsePosition(since),
      version: version === undefined ? undefined : Number(version),
    }
  })
}

/** As the script gives them: epoch, number, first position, the fork or a dash, and how far past it the loss is on record. */
function parseBranches(lines: readonly string[]): History {
  return lines.map((line) => {
    const [epoch = '', number = '', first = '', fork = '-', reported = ''] = line.split(' ')
    const branch: Branch = { epoch, number: Number(number), first: parsePosition(first) }
    if (fork === '-') return branch
    const forked = { ...branch, fork: parsePosition(fork) }
    return reported === '' ? forked : { ...forked, reported: parsePosition(reported) }
  })
}

/**
 * The history a hub goes on with, from the one it knew and the one that is stored now. A log that does not know the hub's
 * branches is another one in the same position: Redis was emptied. Nothing of what the hub knew has survived then, but its
 * readers still stand there and have to be told, so the old branches stay, and the new log forks off at the origin.
 */
export function mergeHistories(known: History, stored: History): History {
  const [oldest, ...later] = stored
  if (!oldest || known.length === 0) return stored
  const at = known.findIndex((branch) => branch.epoch === oldest.epoch)
  if (at === -1) return [...known, { ...oldest, fork: origin }, ...later]
  const { fork } = known[at] as Branch
  // The log has merged what was before it, and names the events it holds of that anew.
  if (fork && !isSame(fork, origin) && !oldest.fork) return stored
  return [...known.slice(0, at + 1), ...later]
}

/**
 * The first position of the log that is stored: what a hub remembers from before it is of another one.
 *
 * @param oldest - the epoch of its first branch
 */
export function baseOf(history: History, oldest: Epoch): Position {
  const start = history.find(({ epoch }) => epoch === oldest)
  return start?.fork ? start.first : origin
}

/**
 * Where a position that was reached on a branch got lost: the first later branch that forked off before it. A history that does
 * not know the branch at all has lost it by its newest at the latest.
 */
export function lostAt(history: History, epoch: string, position: Position): Branch | undefined {
  const at = history.findIndex((branch) => branch.epoch === epoch)
  if (at === -1) return history.at(-1)
  return history.slice(at + 1).find(({ fork }) => fork && isAfter(position, fork))
}
