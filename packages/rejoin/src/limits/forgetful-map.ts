import { Generations } from '@rejoin/hub/internal'

/**
 * A map of what was set lately: what was not set again is kept for `forMs`, and gone after twice that. So its memory is
 * bounded by what happens in that time, and where that can be too much, by `maxEntries`.
 */
export function createForgetfulMap<Value>(options: ForgetfulMapOptions): ForgetfulMap<Value> {
  const { forMs, maxEntries = Number.POSITIVE_INFINITY } = options
  const entries = new Generations<Value>()
  let since = 0

  function turn(now: number): void {
    const age = now - since
    // A clock that was set back would keep all of it for too long.
    if (age >= 0 && age < forMs && entries.newer.size < maxEntries) return
    if (age >= 0 && age < 2 * forMs) entries.turn()
    else entries.clear()
    // As if it had been turned in time.
    since = age < forMs ? now : now - (age % forMs)
  }

  return {
    get(key, now) {
      turn(now)
      return entries.get(key)
    },
    set(key, value, now) {
      turn(now)
      entries.newer.set(key, value)
    },
    clear: () => entries.clear(),
    get size() {
      return new Set([...entries.newer.keys(), ...entries.older.keys()]).size
    },
  }
}

export interface ForgetfulMapOptions {
  readonly forMs: number
  /** Half of how many there may be. @defaultValue no limit */
  readonly maxEntries?: number
}

/** The time is given to it: to read the clock costs more than to look something up. */
export interface ForgetfulMap<Value> {
  get(key: string, now: number): Value | undefined
  set(key: string, value: Value, now: number): void
  clear(): void
  readonly size: number
}
