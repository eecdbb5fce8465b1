/**
 * A map that forgets its oldest entries many at a time: it consists of two maps, and the older one is dropped whole. A map that
 * removes one entry for each new one took a twentieth of a publish.
 */
export class Generations<Value> {
  newer = new Map<string, Value>()
  older = new Map<string, Value>()

  get(key: string): Value | undefined {
    return this.newer.get(key) ?? this.older.get(key)
  }

  /** Sets a value, and keeps at least the last `kept` values and at most twice as many. */
  setAtMost(kept: number, key: string, value: Value): void {
    if (this.newer.size >= kept) this.turn()
    this.newer.set(key, value)
  }

  /** Drops the older map, and begins a new one. */
  turn(): void {
    this.older = this.newer
    this.newer = new Map()
  }

  clear(): void {
    this.newer = new Map()
    this.older = new Map()
  }
}
