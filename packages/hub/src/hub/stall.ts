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

export function createStallWatch(timeoutMs: number, environment: Environment): StallWatch {
  const stalled = new Map<Stalled, { pending: number; since: number }>()

  function look(): void {
    const now = environment.now()
    for (const [reader, seen] of stalled) {
      if (reader.pending < seen.pending) {
        seen.pending = reader.pending
        seen.since = now
      } else if (now - seen.since >= timeoutMs) {
        stalled.delete(reader)
        reader.giveUp()
      }
    }
    cancel = environment.after(timeoutMs / 4, look)
  }
  let cancel = environment.after(timeoutMs / 4, look)

  return {
    watch(reader) {
      const seen = stalled.get(reader)
      // More was written meanwhile: from here on, anything less is progress.
      if (seen) seen.pending = Math.max(seen.pending, reader.pending)
      else stalled.set(reader, { pending: reader.pending, since: environment.now() })
    },
    unwatch: (reader) => void stalled.delete(reader),
    stop: () => cancel(),
  }
}
