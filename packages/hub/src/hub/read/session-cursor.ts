import { type Branch, encodeCheckpoint, isAfter, isSame, origin, type Position, survivorOf } from '@rejoin/protocol'
import type { Gap } from '../../log/contract.ts'
import type { LogIds } from '../log-ids.ts'
import type { SessionContext } from './session-context.ts'
import { newestBranch } from './tail-branch.ts'

// A reader that returns with an id from further back makes the hub search all these events again.
const maxPassedOver = 1000

/** The sink of the session has everything of the subscription up to here. The cursor of a live session stands still. */
export class SessionCursor {
  position: Position = origin
  /** The branch that the position lies on. Positions of two branches can overlap, so a position alone proves nothing. */
  branch: Branch
  /** Events that the reader did not want, since it was last sent an id. */
  #passedOver = 0
  /** Whether the reader got further than the log has survived. It may have events that are newer than those behind a mark. */
  isTorn = false
  /** Where the reader was last told of a gap. */
  #syncedAt: { readonly position: Position; readonly branch: Branch } | undefined

  constructor(branch: Branch) {
    this.branch = branch
  }

  idOf({ idOn }: LogIds): string {
    return idOn(this.position, this.branch)
  }

  moveTo(position: Position, branch: Branch): void {
    this.position = position
    this.branch = branch
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

  checkpoint(ids: LogIds): string {
    this.mark()
    return encodeCheckpoint({ id: this.idOf(ids) })
  }

  /** The reader is told of a gap, and goes on from this position. */
  markSync(): void {
    this.isTorn = false
    this.#syncedAt = { position: this.position, branch: this.branch }
  }

  /** Whether the reader was told of a gap behind the loss, before the loss got a second mark. */
  knowsLoss({ log }: Pick<SessionContext, 'log'>, { isMark, lostBefore }: Gap): boolean {
    const synced = this.#syncedAt
    if (!isMark || !lostBefore || !synced || isAfter(lostBefore, synced.position)) return false
    const survivor = survivorOf(log.history, synced.branch.epoch, synced.position)
    return survivor !== undefined && isSame(survivor, synced.position)
  }

  /** Goes on behind a mark of which the reader need not be told. */
  passMark({ branchOf }: Pick<SessionContext, 'branchOf'>, mark: Position): void {
    this.moveTo(mark, branchOf(mark))
    this.passOver(1)
  }

  /**
   * Whether the log still has this position. A read from a lost position would find no gap, because the log knows nothing of the
   * events that it lost.
   */
  survives({ log, branchOf }: Pick<SessionContext, 'log' | 'branchOf'>): boolean {
    if (this.branch.epoch === newestBranch(log).epoch) return true
    const survivor = survivorOf(log.history, this.branch.epoch, this.position)
    if (!survivor) return false
    if (!isSame(survivor, this.position)) {
      // The channels of this reader lost nothing, or the next read finds the gap. The reader needs an id of the newest branch.
      this.moveTo(survivor, branchOf(survivor))
      this.isTorn = true
      this.passOver(1)
    }
    return true
  }
}
