import type { GapReason } from '@rejoin/protocol'

/** What a hub tells about itself. It logs nothing; a program that wants lines or metrics makes them from these. */
export interface HubObservations {
  /** A reader connected. `requested` is the cursor it brought, null for none. */
  connect: { connection: string; channels: readonly string[]; requested: string | null }
  /** A reader came back with a cursor that could be served and has caught up. */
  replay: { connection: string; channels: readonly string[]; requested: string; replayed: number; elapsedMs: number }
  /** A reader was told that something is gone. */
  gap: { connection: string; channels: readonly string[]; reason: GapReason; requested: string }
  /** A stream ended: the reader left, or the hub ended it for `reason`, with the error that made it do so, if any. */
  close: { connection: string; channels: readonly string[]; reason: string; durationMs: number; cause: unknown }
  publish: { channel: string; type: string; id: string; bytes: number }
}

export interface Observers {
  /** Calls `observe` for each observation of that kind until the returned function is called. */
  on<Kind extends keyof HubObservations>(kind: Kind, observe: (observation: HubObservations[Kind]) => void): () => void
  tell<Kind extends keyof HubObservations>(kind: Kind, observation: HubObservations[Kind]): void
}

export function createObservers(): Observers {
  const observers = new Map<string, Set<(observation: never) => void>>()
  return {
    on(kind, observe) {
      const group = observers.get(kind) ?? new Set()
      observers.set(kind, group.add(observe))
      return () => void group.delete(observe)
    },
    tell(kind, observation) {
      for (const observe of observers.get(kind) ?? []) {
        try {
          observe(observation as never)
        } catch (error) {
          // An observer's mistake belongs to the program, not to the reader whose turn it is.
          queueMicrotask(() => {
            throw error
          })
        }
      }
    },
  }
}
