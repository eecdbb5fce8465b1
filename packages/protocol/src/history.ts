import { type Epoch, isEpoch } from './epoch.ts'
import { RejoinError } from './errors.ts'
import { comparePositions, isAfter, isSame, type Position } from './position.ts'

/**
 * One unbroken part of a log's history. A log opens the next branch when it cannot prove that it still holds everything it
 * acknowledged (§2.3).
 */
export interface Branch {
  readonly epoch: Epoch
  /** Rises in the order in which the branches opened. */
  readonly number: number
  /**
   * A position after all earlier positions of the log. No event gets it, so a cursor from before the branch is never
   * equal to a cursor on the branch.
   */
  readonly first: Position
  /**
   * The newest position that survived of the branch before. Everything after it is lost. Only the first branch has no
   * fork.
   */
  readonly fork?: Position
  /**
   * The position up to which the loss after the fork is on record: every channel that lost an event between `fork` and
   * `reported` is trimmed through the first position of this branch, or of a later branch. Absent when no hub saw the
   * loss.
   */
  readonly reported?: Position
}

/** The branches of one log, oldest first. Plain data: a log can store it as JSON. */
export type History = readonly Branch[]

/**
 * A position and the branch that it lies on. Branches can overlap in time, because two servers that both take themselves
 * for the master give out positions of the same time. So a position alone proves nothing outside its branch.
 */
export interface Point {
  readonly branch: Branch
  readonly position: Position
}

export function isSamePoint(a: Point, b: Point): boolean {
  return isSame(a.position, b.position) && a.branch.epoch === b.branch.epoch
}

/** Returns the history with one more branch. The given history is not changed. */
export function openBranch(history: History, { epoch, first, fork, step = 1 }: NewBranch): History {
  const newest = history.at(-1)
  if (!isEpoch(epoch)) reject(`its epoch ${JSON.stringify(epoch)} is not 8 characters of Crockford base 32`)
  if (history.some((branch) => branch.epoch === epoch)) reject(`its epoch ${epoch} is taken; draw another`)
  if (newest === undefined) {
    if (fork) reject('it is the first and can have no fork; leave the fork out')
    return [{ epoch, number: step - 1, first }]
  }
  if (!fork) reject('it follows another and needs a fork: the newest position the log still holds')
  if (!isAfter(first, newest.first)) reject('its first position is not after that of the branch before it')
  if (!isAfter(first, fork)) reject('its first position is not after its fork')
  return [...history, { epoch, number: newest.number + step, first, fork }]
}

export interface NewBranch {
  /** Drawn for this branch by `createEpoch`. */
  readonly epoch: Epoch
  /**
   * Take it from the log's clock, so that it is after every position that the log ever assigned. No event may get it.
   */
  readonly first: Position
  /** The newest position that the log still holds. Required for every branch but the first. */
  readonly fork?: Position | undefined
  /**
   * How much higher the branch's number is than that of the branch before; for the first branch, than −1. A log that
   * can be copied or emptied draws the step at random: two copies that both opened the next number would give the same
   * snowflake ids.
   * @defaultValue 1
   */
  readonly step?: number | undefined
}

/**
 * Merges the oldest branches once the history has more than `most`. Half of `most`, the newest, stay. Events of the
 * merged branches go on under the name of the oldest branch that stays. An id with the name of a merged branch is
 * judged `epoch`: the log can no longer tell whether its position survived.
 */
export function mergeBranches(history: History, most: number): History {
  const [oldest] = history
  if (!oldest || history.length <= most) return history
  const [heir, ...kept] = history.slice(-Math.ceil(most / 2))
  return heir ? [{ epoch: heir.epoch, number: heir.number, first: oldest.first }, ...kept] : history
}

/**
 * The branch of a position: the newest branch whose first position is not after it. Undefined before the first branch.
 */
export function branchAt(history: History, position: Position): Branch | undefined {
  const newest = history.at(-1)
  if (newest && comparePositions(newest.first, position) <= 0) return newest
  return history.findLast((branch) => comparePositions(branch.first, position) <= 0)
}

/**
 * Where a reader that stood at `point` stands in this history. Undefined when the log has lost that point, or never had
 * it. The ancestry of branches decides, and not the order of positions.
 *
 * When the loss after a fork is on record, a position after the fork becomes the fork: the reader reads on from there
 * on the newest branch, and the read reports the channels that lost events.
 */
export function survivorOf(history: History, { branch, position }: Point): Position | undefined {
  let at = history.length - 1
  while (at >= 0 && history[at]?.epoch !== branch.epoch) at -= 1
  return at < 0 ? undefined : survivorFrom(history, at, position)
}

/** Like `survivorOf`, for the branch with this index. */
export function survivorFrom(history: History, index: number, position: Position): Position | undefined {
  let survivor = position
  for (let at = index + 1; at < history.length; at += 1) {
    const { fork, reported } = history[at] as Branch
    // Every later fork counts, not only the next one: a second loss can reach back behind the first.
    if (fork === undefined) return undefined
    if (!isAfter(survivor, fork)) continue
    if (reported === undefined || isAfter(survivor, reported)) return undefined
    survivor = fork
  }
  return survivor
}

function reject(reason: string): never {
  throw new RejoinError(`The log cannot open this branch: ${reason}.`, { code: 'invalid-option' })
}
