import type { ProbeSeen } from '@rejoin/doctor/probe'
import { createForgetfulMap } from '../limits/forgetful-map.ts'

/** Remembers whether recent probes are open or closed, for a doctor that asks whether the hub saw it leave. */
export interface Sightings {
  opened(token: string): void
  closed(token: string): void
  of(token: string): ProbeSeen
}

export function createSightings(now: () => number): Sightings {
  const seen = createForgetfulMap<{ closedAt?: number }>({ forMs: rememberedMs, maxEntries })
  return {
    opened: (token) => seen.set(token, {}, now()),
    closed: (token) => seen.set(token, { closedAt: now() }, now()),
    of(token) {
      const known = seen.get(token, now())
      if (!known) return { state: 'unknown' }
      if (known.closedAt === undefined) return { state: 'open' }
      return { state: 'closed', closedMsAgo: Math.round(now() - known.closedAt) }
    },
  }
}

// Probes are remembered for as long as they can be open, so that every open probe is known.
const rememberedMs = 120_000
const maxEntries = 1000
