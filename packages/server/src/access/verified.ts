import type { Identity } from './identity.ts'

/**
 * Tokens and keys that were found good a moment ago, by their digest. To check one costs about as much as to publish an
 * event, and a publisher sends the same one a thousand times a second.
 */
export interface Verified {
  get(digest: string): Identity | undefined
  add(digest: string, identity: Identity): void
  clear(): void
}

// About 10 MB; with more publishers than that, the oldest are checked again.
const maxEntries = 10_000
const goodForMs = 30_000

export function createVerified(now: () => number): Verified {
  const entries = new Map<string, { identity: Identity; since: number }>()
  return {
    get(digest) {
      const entry = entries.get(digest)
      if (!entry) return undefined
      // Either way, because the clock may have been set back.
      if (Math.abs(now() - entry.since) < goodForMs) return entry.identity
      entries.delete(digest)
      return undefined
    },
    add(digest, identity) {
      const [oldest] = entries.keys()
      if (entries.size >= maxEntries && oldest !== undefined) entries.delete(oldest)
      entries.set(digest, { identity, since: now() })
    },
    clear: () => entries.clear(),
  }
}
