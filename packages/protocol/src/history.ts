import { type Epoch, isEpoch } from './epoch.ts'
import { RejoinError } from './errors.ts'
import { comparePositions, isAfter, type Position } from './position.ts'

/** One unbroken stretch of a log, in which everything acknowledged is known to be held (§2.3). */
export interface Branch {
  readonly epoch: Epoch
  /** Rises in the order in which the branches opened. */
  readonly number: number
  /** Later than any earlier position of the log, and no event's: a cursor from before can be told from one after. */
  readonly first: Position
  /** The head that survived of what came before. What lay past it is lost; only the first branch has none. */
  readonly fork?: Position
  /**
   * How far past the fork the loss is on record: every channel that lost an event between the two is trimmed through the
   * first position of this branch, or of a later one. Absent when nobody saw what was lost.
   */
  readonly reported?: Position
}

/** The branches of one log, oldest first. Plain data: a log stores it as JSON and takes it back as it is. */
export type History = readonly Branch[]

/** The history with one more branch. The given one stays as it was. */
export function openBranch(history: History, { epoch, first, fork, step = 1 }: NewBranch): History {
  const newest = history.at(-1)
  if (!isEpoch(epoch)) refuse(`its epoch ${JSON.stringify(epoch)} is not 8 characters of Crockford base 32`)
  if (history.some((branch) => branch.epoch === epoch)) refuse(`its epoch ${epoch} is taken; draw another`)
  if (newest === undefined) {
    if (fork) refuse('it is the first and can have no fork; leave the fork out')
    return [{ epoch, number: step - 1, first }]
  }
  if (!fork) refuse('it follows another and needs a fork: the newest position the log still holds')
  if (!isAfter(first, newest.first)) refuse('its first position is not after that of the branch before it')
  if (!isAfter(first, fork)) refuse('its first position is not after its fork')
  return [...history, { epoch, number: newest.number + step, first, fork }]
}

export interface NewBranch {
  /** Drawn for this branch by `createEpoch`. */
  readonly epoch: Epoch
  /** Taken from the log's clock, so that it is after everything the log ever assigned; no event may get it. */
  readonly first: Position
  /** The newest position that survived. Required for every branch but the first of a log. */
  readonly fork?: Position | undefined
  /**
   * How far its number is from that of the branch before it, or from −1 for the first. A log that can be copied or emptied draws
   * it at random: two copies that both opened the next number would give the same snowflake ids.
   * @defaultValue 1
   */
  readonly step?: number | undefined
}

/**
 * The history with its oldest branches merged into one, once there are more than `most`: half of them stay as they are. What
 * is held of the others goes on under the name of the oldest branch that stays, and an id with the name of a merged branch is
 * judged `epoch`: nobody could tell any more whether its position survived.
 */
export function mergeBranches(history: History, most: number): History {
  const [oldest] = history
  if (!oldest || history.length <= most) return history
  const [heir, ...kept] = history.slice(-Math.ceil(most / 2))
  return heir ? [{ epoch: heir.epoch, number: heir.number, first: oldest.first }, ...kept] : history
}

/** The branch a position lies on: the last whose first position is not after it. None before the first branch. */
export function branchAt(history: History, position: Position): Branch | undefined {
  const newest = history.at(-1)
  if (newest && comparePositions(newest.first, position) <= 0) return newest
  return history.findLast((branch) => comparePositions(branch.first, position) <= 0)
}

/**
 * Where a reader that stood at `position` on the branch `epoch` stands in this history; undefined when the log has lost that
 * position, or never had it. Decided by ancestry: two servers that both took themselves for the master give out positions of
 * the same time, so their order proves nothing.
 *
 * A position past a fork whose loss is on record becomes the fork: what follows it is read on the branch of today, and the
 * channels that lost something say so themselves.
 */
export function survivorOf(history: History, epoch: Epoch, position: Position): Position | undefined {
  let at = history.length - 1
  while (at >= 0 && history[at]?.epoch !== epoch) at -= 1
  return at < 0 ? undefined : survivorFrom(history, at, position)
}

/** The same for a position on the branch with this index. */
export function survivorFrom(history: History, index: number, position: Position): Position | undefined {
  let survivor = position
  for (let at = index + 1; at < history.length; at += 1) {
    const { fork, reported } = history[at] as Branch
    // Every fork on the way counts, not only the next: a second loss can reach back behind the first.
    if (fork === undefined) return undefined
    if (!isAfter(survivor, fork)) continue
    if (reported === undefined || isAfter(survivor, reported)) return undefined
    survivor = fork
  }
  return survivor
}

function refuse(reason: string): never {
  throw new RejoinError(`The log cannot open this branch: ${reason}.`, { code: 'invalid-option' })
}
