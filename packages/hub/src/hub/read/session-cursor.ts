import { encodeCheckpoint, isAfter, isSame, type Point, type Position, survivorOf } from '@rejoin/protocol'
import type { Gap, Log } from '../../log/contract.ts'
import type { LogIds } from '../log-ids.ts'
import { newestBranch } from './tail-wait.ts'

// A reader that returns with an id from further back makes the hub search all these events again.
const maxPassedOver = 1000

/** The sink of the session has everything of the subscription up to here. The cursor of a live session stands still. */
export class SessionCursor {
  at: Point
  /** Events that the reader did not want, since it was last sent an id. */
  #passedOver = 0
  /** Whether the reader got further than the log has survived. It may have events that are newer than those behind a mark. */
  isTorn = false
  /** Where the reader was last told of a gap. */
  #syncedAt: Point | undefined

  constructor(at: Point) {
    this.at = at
  }

  moveTo(point: Point): void {
    this.at = point
  }

  /** The reader is sent an id with the next write. */
  mark(): void {
    this.#passedOver = 0
  }

  passOver(events: number): void {
    this.#passedOver += events
  }

  /** Whether the reader holds an older id than this cursor. */
  get isUnmarked(): boolean {
    return this.#passedOver > 0
  }

  get needsCheckpoint(): boolean {
    return this.#passedOver > maxPassedOver
  }

  checkpoint({ idAt }: LogIds): string {
    this.mark()
    return encodeCheckpoint({ id: idAt(this.at) })
  }

  /** The reader is told of a gap, and goes on from this position. */
  markSync(): void {
    this.isTorn = false
    this.#syncedAt = this.at
  }

  /** Whether the reader was told of a gap behind the loss, before the loss got a second mark. */
  knowsLoss({ log }: { readonly log: Pick<Log, 'history'> }, { isMark, lostBefore }: Gap): boolean {
    const synced = this.#syncedAt
    if (!isMark || !lostBefore || !synced || isAfter(lostBefore, synced.position)) return false
    const survivor = survivorOf(log.history, synced)
    return survivor !== undefined && isSame(survivor, synced.position)
  }

  /** Goes on behind a mark of which the reader need not be told. */
  passMark({ pointAt }: LogIds, mark: Position): void {
    this.moveTo(pointAt(mark))
    this.passOver(1)
  }

  /**
   * Whether the log still has this position. A read from a lost position would find no gap, because the log knows nothing of the
   * events that it lost.
   */
  survives({ log, pointAt }: LogIds & { readonly log: Pick<Log, 'history'> }): boolean {
    if (this.at.branch.epoch === newestBranch(log).epoch) return true
    const survivor = survivorOf(log.history, this.at)
    if (!survivor) return false
    if (!isSame(survivor, this.at.position)) {
      // The channels of this reader lost nothing, or the next read finds the gap. The reader needs an id of the newest branch.
      this.moveTo(pointAt(survivor))
      this.isTorn = true
      this.passOver(1)
    }
    return true
  }
}
