/**
 * Rations something by key: each may have `perSecond`, and `burst` at once after a pause. Memory is bounded: whoever has
 * been quiet for long enough to have a full bucket is forgotten, which changes nothing for them.
 */
export function createTokenBuckets({ perSecond, burst, now }: TokenBucketOptions): TokenBuckets {
  const refillMs = (burst / perSecond) * 1000
  // Two generations, the older one thrown away whole: who was seen in neither has a full bucket again.
  let recent = new Map<string, Bucket>()
  let older = new Map<string, Bucket>()
  let since = now()

  function turn(at: number): void {
    if (at >= since && at - since < refillMs) return
    older = at >= since && at - since < 2 * refillMs ? recent : new Map()
    recent = new Map()
    since = at
  }

  return {
    take(key) {
      const at = now()
      turn(at)
      const bucket = recent.get(key) ?? older.get(key) ?? { tokens: burst, at }
      recent.set(key, bucket)
      // A clock that was set back gives nothing and takes nothing.
      bucket.tokens = Math.min(burst, bucket.tokens + (Math.max(0, at - bucket.at) / 1000) * perSecond)
      bucket.at = at
      if (bucket.tokens < 1) return ((1 - bucket.tokens) / perSecond) * 1000
      bucket.tokens -= 1
      return 0
    },
    get size() {
      return new Set([...recent.keys(), ...older.keys()]).size
    },
  }
}

export interface TokenBucketOptions {
  readonly perSecond: number
  readonly burst: number
  now(): number
}

export interface TokenBuckets {
  /** Takes one if there is one and gives 0; else for how long to wait, in milliseconds. */
  take(key: string): number
  /** How many keys are remembered. */
  readonly size: number
}

interface Bucket {
  tokens: number
  at: number
}
