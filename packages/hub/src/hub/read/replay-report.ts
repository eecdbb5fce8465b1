import type { Frame } from '../live/frame.ts'

/** Counts what a reader that came back is handed until it has caught up. */
export class ReplayReport {
  replayed = 0
  /** The age of the first event that the reader had missed. */
  absenceMs: number | null = null

  add(frames: readonly Frame[], now: number): void {
    const [first] = frames
    if (this.replayed === 0 && first) this.absenceMs = Math.max(0, now - first.at)
    this.replayed += frames.length
  }
}
