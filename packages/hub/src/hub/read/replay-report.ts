import type { Frame } from '../live/frame.ts'
import type { UnfinishedReplay } from '../observation.ts'

/** Counts the events that a returning reader is sent until it has caught up. */
export class ReplayReport {
  /** The cursor that the reader brought, as logs show it. */
  readonly requested: string
  replayed = 0
  /** The age of the first event that the reader had missed. */
  absenceMs: number | null = null

  constructor(requested: string) {
    this.requested = requested
  }

  add(frames: readonly Frame[], now: number): void {
    const [first] = frames
    if (this.replayed === 0 && first) this.absenceMs = Math.max(0, now - first.at)
    this.replayed += frames.length
  }

  unfinished(found: UnfinishedReplay['found']): UnfinishedReplay {
    return { requested: this.requested, found, replayed: this.replayed }
  }
}
