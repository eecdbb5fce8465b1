import { createForgetfulMap } from './forgetful-map.ts'

/**
 * Rations something by key: each key may take `perSecond`, and `burst` at once after a pause. Memory is bounded: a key that has
 * been quiet until its bucket was full is forgotten, which changes nothing for that key.
 */
export function createTokenBuckets({ perSecond, burst, now }: TokenBucketOptions): TokenBuckets {
  const buckets = createForgetfulMap<Bucket>({ forMs: (burst / perSecond) * 1000 })

  return {
    take(key) {
      const at = now()
      const bucket = buckets.get(key, at) ?? { tokens: burst, at }
      buckets.set(key, bucket, at)
      // A clock that was set back gives nothing and takes nothing.
      bucket.tokens = Math.min(burst, bucket.tokens + (Math.max(0, at - bucket.at) / 1000) * perSecond)
      bucket.at = at
      if (bucket.tokens < 1) return ((1 - bucket.tokens) / perSecond) * 1000
      bucket.tokens -= 1
      return 0
    },
    get size() {
      return buckets.size
    },
  }
}

export interface TokenBucketOptions {
  readonly perSecond: number
  readonly burst: number
  now(): number
}

export interface TokenBuckets {
  /** Takes one token and returns 0; without a token, returns for how many milliseconds to wait. */
  take(key: string): number
  /** How many keys are remembered. */
  readonly size: number
}

interface Bucket {
  tokens: number
  at: number
}
