import type { Environment } from '../environment.ts'

/** A reader whose sink is full. */
export interface Stalled {
  /** Bytes that still wait to be read. */
  readonly pending: number
  /** Called when nothing was read for too long. */
  giveUp(): void
}

/** Watches full sinks, and gives up on those that nobody reads from any more. */
export interface StallWatch {
  watch(stalled: Stalled): void
  unwatch(stalled: Stalled): void
  stop(): void
}

// Time is counted in looks and not by the clock, which may be set back and would then keep a dead reader for as long.
const looksPerTimeout = 4

export function createStallWatch(timeoutMs: number, environment: Environment): StallWatch {
  const stalled = new Map<Stalled, { pending: number; looks: number }>()

  function look(): void {
    for (const [reader, seen] of stalled) {
      if (reader.pending < seen.pending) {
        seen.pending = reader.pending
        seen.looks = 0
      } else if (seen.looks === looksPerTimeout) {
        stalled.delete(reader)
        reader.giveUp()
      } else {
        seen.looks += 1
      }
    }
    cancel = environment.after(timeoutMs / looksPerTimeout, look)
  }
  let cancel = environment.after(timeoutMs / looksPerTimeout, look)

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
