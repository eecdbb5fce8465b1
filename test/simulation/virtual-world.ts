import { createRandom } from '@rejoin/hub/testing'

/**
 * One line of virtual time for everything there is, and one source of chance: a seed is a history. Things happen one at a
 * time, and whatever promises a thing settles are run to their end before the next.
 */
export interface World {
  readonly chance: Chance
  /** Milliseconds since the beginning. The true time, which nobody's clock has to show. */
  readonly now: number
  /** Things that have happened. */
  readonly steps: number
  /** Lets `task` happen after `delayMs`. What is due at the same time happens in the order in which it was asked for. */
  after(delayMs: number, task: () => void): Cancel
  /** Lets time pass. */
  advance(ms: number): Promise<void>
}

export type Cancel = () => void

// A thousand times what a busy instant has.
const mostStepsOfAnInstant = 100_000

export function createWorld(seed: number): World {
  const due = createQueue()
  let now = 0
  let steps = 0
  let asked = 0

  return {
    chance: createChance(seed),
    get now() {
      return now
    },
    get steps() {
      return steps
    },
    after(delayMs, task) {
      const item: Item = { at: now + Math.max(0, delayMs), order: asked++, task }
      due.add(item)
      return () => {
        item.task = undefined
      }
    },
    async advance(ms) {
      const until = now + ms
      let stepsOfNow = 0
      for (let next = due.first(); next && next.at <= until; next = due.first()) {
        due.removeFirst()
        if (!next.task) continue
        stepsOfNow = next.at > now ? 0 : stepsOfNow + 1
        if (stepsOfNow > mostStepsOfAnInstant)
          throw new Error(`Time stands still at ${now}: something goes on without end.`)
        now = next.at
        steps += 1
        next.task()
        await settled()
      }
      now = until
    },
  }
}

/** The tick queue's turn comes when no microtask is left, so every promise that can settle has settled by then. */
function settled(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve))
}

/** Draws of all kinds from one seeded generator. */
export interface Chance {
  /** From 0 up to, but not including, 1. */
  number(): number
  /** Whether something of this probability happens. */
  happens(probability: number): boolean
  between(low: number, high: number): number
  /** A whole number from `low` to `high`, both included. */
  whole(low: number, high: number): number
  pick<Item>(items: readonly Item[]): Item
  /** At least one of them, in their order. */
  some<Item>(items: readonly Item[]): Item[]
}

export function createChance(seed: number): Chance {
  // Neighbouring seeds begin alike in the generator; multiplied by an odd number they are far apart.
  const number = createRandom(Math.imul(seed + 1, 0x9e3779b1))
  const whole = (low: number, high: number) => low + Math.floor(number() * (high - low + 1))
  const pick = <Item>(items: readonly Item[]) => items[whole(0, items.length - 1)] as Item
  return {
    number,
    happens: (probability) => number() < probability,
    between: (low, high) => low + number() * (high - low),
    whole,
    pick,
    some(items) {
      const taken = items.filter(() => number() < 0.5)
      return taken.length > 0 ? taken : [pick(items)]
    },
  }
}

interface Item {
  readonly at: number
  readonly order: number
  /** Undefined once it was called off. */
  task: (() => void) | undefined
}

/** A binary heap: a run has tens of thousands of things to come. */
function createQueue() {
  const heap: Item[] = []
  const isBefore = (a: Item, b: Item) => a.at < b.at || (a.at === b.at && a.order < b.order)

  function swap(a: number, b: number): void {
    const item = heap[a] as Item
    heap[a] = heap[b] as Item
    heap[b] = item
  }

  return {
    first: () => heap[0],
    add(item: Item): void {
      let at = heap.push(item) - 1
      while (at > 0) {
        const parent = (at - 1) >> 1
        if (!isBefore(item, heap[parent] as Item)) return
        swap(at, parent)
        at = parent
      }
    },
    removeFirst(): void {
      const last = heap.pop() as Item
      if (heap.length === 0) return
      heap[0] = last
      for (let at = 0; ; ) {
        const left = 2 * at + 1
        const right = left + 1
        let first = at
        if (left < heap.length && isBefore(heap[left] as Item, heap[first] as Item)) first = left
        if (right < heap.length && isBefore(heap[right] as Item, heap[first] as Item)) first = right
        if (first === at) return
        swap(at, first)
        at = first
      }
    },
  }
}
