import type { Environment } from '../../environment.ts'

/** A reader whose sink is full. */
export interface Stalled {
  /** Bytes that still wait to be read. */
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

// Time is counted in checks and not by the clock: a clock that is set back would keep a dead reader for as long.
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
      // More was written meanwhile: from here on, anything less is progress.
      if (seen) seen.pending = Math.max(seen.pending, reader.pending)
      else stalled.set(reader, { pending: reader.pending, looks: 0 })
    },
    unwatch: (reader) => void stalled.delete(reader),
    stop: () => cancel(),
  }
}
