import { type Branch, branchAt, type Position, renderId } from '@rejoin/protocol'
import type { Log } from '../log/contract.ts'

export interface LogIds {
  idOf(position: Position): string
  /** The id of a position on this branch, even if the log has another branch there by now. */
  idOn(position: Position, branch: Branch): string
  /** The branch of a position, according to the history of the log now. */
  branchOf(position: Position): Branch
}

export function idsOf(log: Pick<Log, 'formats' | 'history'>): LogIds {
  return {
    idOf: (position) => renderId(position, log),
    idOn: (position, branch) => log.formats.encode(position, branch),
    branchOf: (position) => branchAt(log.history, position) ?? (log.history[0] as Branch),
  }
}
