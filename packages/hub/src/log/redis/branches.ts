import {
  type Branch,
  type Epoch,
  type History,
  isAfter,
  isSame,
  mergeBranches,
  origin,
  type Position,
} from '@rejoin/protocol'
import type { StoredFormat } from '../stored-formats.ts'
import { parsePosition, positionText } from './entry.ts'

/** The formats and the history of the log, as a step of the script tells them. */
export interface StoredHistory {
  /** The formats of the ids, for `parseFormats`. */
  readonly ids: string
  readonly history: History
}

/**
 * Reads the lines of an answer. Formats and history come together: with a new history and old formats, or the reverse, this hub
 * could render an id that the event has on no other hub.
 */
export function parseStoredHistory([ids = '', ...branches]: readonly string[]): StoredHistory {
  return { ids, history: parseBranches(branches) }
}

/**
 * Each format is a line: the codec's name and sample id, the position since when it holds (except the first), and its version.
 */
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

/** Each branch is a line: epoch, number, first position, the fork or a dash, and how far past the fork the loss is on record. */
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
 * The branches of an answer as the log should list them instead: the oldest are merged. Undefined while there are few.
 */
export function mergedLines([, ...branches]: readonly string[]): readonly string[] | undefined {
  if (branches.length <= mostBranches) return undefined
  const [heir, ...kept] = mergeBranches(parseBranches(branches), mostBranches) as [Branch, ...Branch[]]
  return [`${heir.epoch} ${heir.number} ${positionText(heir.first)} -`, ...branches.slice(-kept.length)]
}

// These take about 50 KB, which a hub reads when it connects, and when a branch opens.
const mostBranches = 1000

/**
 * Merges the history that the hub knew with the stored one. A stored history without the hub's branches is that of another log:
 * Redis was emptied. None of the old events has survived, but the hub's readers still stand on the old branches and have
 * to be notified. So the old branches stay in the history, and the new log forks off at the origin.
 */
export function mergeHistories(known: History, stored: History): History {
  const [oldest, ...later] = stored
  if (!oldest || known.length === 0) return stored
  const at = known.findIndex((branch) => branch.epoch === oldest.epoch)
  if (at === -1) return [...known, { ...oldest, fork: origin }, ...later]
  const { fork } = known[at] as Branch
  // The log has merged its oldest branches into this one, which now names their events.
  if (fork && !isSame(fork, origin) && !oldest.fork) return stored
  return [...known.slice(0, at + 1), ...later]
}

/**
 * The first position of the stored log. Earlier positions that a hub remembers are of another log.
 *
 * @param oldest - the epoch of the stored log's first branch
 */
export function baseOf(history: History, oldest: Epoch): Position {
  const start = history.find(({ epoch }) => epoch === oldest)
  return start?.fork ? start.first : origin
}

/**
 * The branch that lost a position of an earlier branch: the first later branch that forked off before the position. Undefined
 * when the position still counts. When the history does not know the earlier branch, that is its newest branch.
 */
export function lostAt(history: History, epoch: string, position: Position): Branch | undefined {
  const at = history.findIndex((branch) => branch.epoch === epoch)
  if (at === -1) return history.at(-1)
  return history.slice(at + 1).find(({ fork }) => fork && isAfter(position, fork))
}

/**
 * The branch whose opening put a loss on record at this position. No event stands at the first position of a branch, so a channel
 * that has nothing up to there has lost something by a rollback. The first branch of a log follows no rollback.
 */
export function lossRecordedAt(history: History, position: Position): Branch | undefined {
  return history.find(({ first, fork }) => fork !== undefined && isSame(first, position))
}
