import { createForgetfulMap } from '../limits/forgetful-map.ts'
import type { Identity } from './identity.ts'

/**
 * Tokens and keys that were found good a moment ago. Checking a token costs about as much as publishing an event, and a publisher
 * may send the same token a thousand times a second.
 *
 * Tokens are keys of a map as they are: a digest would cost every publish 2 µs. A map compares only keys with the same hash, and
 * nobody outside knows its hash function, so the time of a lookup tells nothing about the tokens.
 */
export interface Verified {
  get(presented: string): Identity | undefined
  add(presented: string, identity: Identity): void
  clear(): void
}

// An entry is used for at least this long, and at most twice as long.
const goodForMs = 15_000
// At most twice this many are kept: about 25 MB with tokens of 1 KB. With more publishers, some tokens are checked again.
const maxEntries = 10_000

export function createVerified(now: () => number): Verified {
  const identities = createForgetfulMap<Identity>({ forMs: goodForMs, maxEntries })
  return {
    get: (presented) => identities.get(presented, now()),
    add: (presented, identity) => identities.set(presented, identity, now()),
    clear: identities.clear,
  }
}
