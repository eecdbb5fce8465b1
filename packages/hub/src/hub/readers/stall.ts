import type { Environment } from '../../environment.ts'

/** A reader whose sink is full. */
export interface Stalled {
  /** Bytes that the reader has yet to read. */
  readonly pending: number
  /** Called when nothing was read for too long. */
  giveUp(): void
}

/** Watches full sinks, and gives up sinks from which nobody reads any more. */
export interface StallWatch {
  watch(stalled: Stalled): void
  unwatch(stalled: Stalled): void
  stop(): void
}

// Time is counted in checks, not by the clock. If the clock were set back, a dead reader would be kept for longer.
const checksPerTimeout = 4

export function createStallWatch(timeoutMs: number, environment: Environment): StallWatch {
  const stalled = new Map<Stalled, { pending: number; looks: number }>()

  function checkStalls(): void {
    for (const [reader, seen] of stalled) {
      if (reader.pending < seen.pending) {
        seen.pending = reader.pending
        seen.looks = 0
      } else if (seen.looks === checksPerTimeout) {
        stalled.delete(reader)
        reader.giveUp()
      } else {
        seen.looks += 1
      }
    }
    cancel = environment.after(timeoutMs / checksPerTimeout, checkStalls)
  }
  let cancel = environment.after(timeoutMs / checksPerTimeout, checkStalls)

  return {
    watch(reader) {
      const seen = stalled.get(reader)
      // More was written meanwhile. From now on, a smaller number is progress.
      if (seen) seen.pending = Math.max(seen.pending, reader.pending)
      else stalled.set(reader, { pending: reader.pending, looks: 0 })
    },
    unwatch: (reader) => void stalled.delete(reader),
    stop: () => cancel(),
  }
}
