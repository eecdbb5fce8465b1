import { type Branch, branchAt, type Position, renderId } from '@rejoin/protocol'
import type { Log } from '../log/contract.ts'

/** The ids of a log's positions. */
export interface LogIds {
  idOf(position: Position): string
  /** The id of a position on a branch, whatever the log says of it by now. */
  idOn(position: Position, branch: Branch): string
  /** The branch that a position of the log lies on, as the log tells it now. */
  branchOf(position: Position): Branch
}

export function idsOf(log: Pick<Log, 'formats' | 'history'>): LogIds {
  return {
    idOf: (position) => renderId(position, log),
    idOn: (position, branch) => log.formats.encode(position, branch),
    branchOf: (position) => branchAt(log.history, position) ?? (log.history[0] as Branch),
  }
}
