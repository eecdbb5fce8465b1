import { type Epoch, isEpoch } from './epoch.ts'
import { RejoinError } from './errors.ts'
import { comparePositions, isAfter, type Position } from './position.ts'

/** One unbroken stretch of a log, in which everything acknowledged is known to be held (§2.3). */
export interface Branch {
  readonly epoch: Epoch
  /** 0, 1, … in the order in which the branches opened. */
  readonly number: number
  /** Later than any earlier position of the log, and no event's: a cursor from before can be told from one after. */
  readonly first: Position
  /** The head that survived of what came before. What lay past it is lost; only the first branch has none. */
  readonly fork?: Position
}

/** The branches of one log, oldest first. Plain data: a log stores it as JSON and takes it back as it is. */
export type History = readonly Branch[]

/** The history with one more branch. The given one stays as it was. */
export function openBranch(history: History, { epoch, first, fork }: NewBranch): History {
  const newest = history.at(-1)
  if (!isEpoch(epoch)) refuse(`its epoch ${JSON.stringify(epoch)} is not 8 characters of Crockford base 32`)
  if (history.some((branch) => branch.epoch === epoch)) refuse(`its epoch ${epoch} is taken; draw another`)
  if (newest === undefined) {
    if (fork) refuse('it is the first and can have no fork; leave the fork out')
    return [{ epoch, number: 0, first }]
  }
  if (!fork) refuse('it follows another and needs a fork: the newest position the log still holds')
  if (!isAfter(first, newest.first)) refuse('its first position is not after that of the branch before it')
  if (!isAfter(first, fork)) refuse('its first position is not after its fork')
  return [...history, { epoch, number: newest.number + 1, first, fork }]
}

export interface NewBranch {
  /** Drawn for this branch by `createEpoch`. */
  readonly epoch: Epoch
  /** Taken from the log's clock, so that it is after everything the log ever assigned; no event may get it. */
  readonly first: Position
  /** The newest position that survived. Required for every branch but the first of a log. */
  readonly fork?: Position | undefined
}

/** The branch a position lies on: the last whose first position is not after it. None before the first branch. */
export function branchAt(history: History, position: Position): Branch | undefined {
  return history.findLast((branch) => comparePositions(branch.first, position) <= 0)
}

/** Whether a rollback has taken this place away: it lies past a fork and before the branch that opened there. */
export function isLost(history: History, position: Position): boolean {
  return history.some(({ fork, first }) => fork !== undefined && isAfter(position, fork) && isAfter(first, position))
}

function refuse(reason: string): never {
  throw new RejoinError(`The log cannot open this branch: ${reason}.`, { code: 'invalid-option' })
}
