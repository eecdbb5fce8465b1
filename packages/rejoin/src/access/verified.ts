import { createForgetfulMap } from '../limits/forgetful-map.ts'
import type { Identity } from './identity.ts'

/**
 * Tokens and keys that were found good a moment ago. To check one costs about as much as to publish an event, and a
 * publisher sends the same one a thousand times a second.
 *
 * They are looked up as they are, because a digest of each would cost every publish 2 µs. A map compares only what hashes
 * alike, by a hash that nobody outside knows, so its time tells nothing about them.
 */
export interface Verified {
  get(presented: string): Identity | undefined
  add(presented: string, identity: Identity): void
  clear(): void
}

// At least; and twice that at most.
const goodForMs = 15_000
// Twice this, of tokens of 1 KB, is about 25 MB. With more publishers than that, some are checked again.
const maxEntries = 10_000

export function createVerified(now: () => number): Verified {
  const identities = createForgetfulMap<Identity>({ forMs: goodForMs, maxEntries })
  return {
    get: (presented) => identities.get(presented, now()),
    add: (presented, identity) => identities.set(presented, identity, now()),
    clear: identities.clear,
  }
}
