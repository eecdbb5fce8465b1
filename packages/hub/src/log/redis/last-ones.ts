/**
 * The last things that were set, by name: at least `kept` of them and at most twice as many. Two maps in turn, because one
 * that lets go of its oldest for each that comes took a twentieth of a publish.
 */
export interface LastOnes<Thing> {
  get(name: string): Thing | undefined
  set(name: string, thing: Thing): void
}

export function createLastOnes<Thing>(kept: number): LastOnes<Thing> {
  let newer = new Map<string, Thing>()
  let older = newer

  return {
    get: (name) => newer.get(name) ?? older.get(name),
    set(name, thing) {
      if (newer.size >= kept) {
        older = newer
        newer = new Map()
      }
      newer.set(name, thing)
    },
  }
}
