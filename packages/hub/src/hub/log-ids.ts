import { type Branch, branchAt, type Point, type Position, renderId } from '@rejoin/protocol'
import type { Log } from '../log/contract.ts'

export interface LogIds {
  idOf(position: Position): string
  /** The id of a point, even if the log has another branch there by now. */
  idAt(point: Point): string
  /** A position with its branch, according to the history of the log now. */
  pointAt(position: Position): Point
}

export function idsOf(log: Pick<Log, 'formats' | 'history'>): LogIds {
  return {
    idOf: (position) => renderId(position, log),
    idAt: ({ position, branch }) => log.formats.encode(position, branch),
    pointAt: (position) => ({ branch: branchAt(log.history, position) ?? (log.history[0] as Branch), position }),
  }
}
