import { Generations } from '@rejoin/hub/internal'

/**
 * A map that forgets. An entry that is not set again stays for at least `forMs`, and is gone after twice that time. So the memory
 * is bounded by the entries of that time, or by `maxEntries`.
 */
export function createForgetfulMap<Value>(options: ForgetfulMapOptions): ForgetfulMap<Value> {
  const { forMs, maxEntries = Number.POSITIVE_INFINITY } = options
  const entries = new Generations<Value>()
  let since = 0

  function turn(now: number): void {
    const age = now - since
    // A clock that was set back (a negative age) would keep all entries too long, so they are cleared.
    if (age >= 0 && age < forMs && entries.newer.size < maxEntries) return
    if (age >= 0 && age < 2 * forMs) entries.turn()
    else entries.clear()
    // As if the maps had turned on time.
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
  /**
   * Entries in each of the two maps, so half of the most that are kept. When a map is full, the older entries go early.
   * @defaultValue no limit
   */
  readonly maxEntries?: number
}

/** Callers pass the time, because reading the clock costs more than a lookup. */
export interface ForgetfulMap<Value> {
  get(key: string, now: number): Value | undefined
  set(key: string, value: Value, now: number): void
  clear(): void
  readonly size: number
}
