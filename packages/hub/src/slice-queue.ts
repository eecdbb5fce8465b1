import type { Environment } from './environment.ts'

/**
 * Runs long work in slices, so that it never stops the event loop. Slices run first come, first served. A slice that does not
 * fit into this turn of the event loop runs in a later turn. A slice should take a millisecond or two.
 */
export interface SliceQueue {
  /** Runs `slice` now if this turn has time left for it, else in a later turn. */
  add(slice: () => void): void
  /** Like `add`, with a result. A promise that `slice` returns is awaited, and does not hold up other slices. */
  take<Result>(slice: () => Result | Promise<Result>): Promise<Result>
  /** Whether this turn has time left, for work that can stop at any point. */
  hasTime(): boolean
  /**
   * Call this when a reader comes in. The slices of the next turn then get less time. Node accepts one connection in each turn
   * of the event loop, so a publisher with a new connection would otherwise wait until all readers have caught up.
   */
  makeWay(): void
}

// Slices delay live events by at most this long per turn.
const budgetMs = 5
// The budget while readers come in: a hundred new connections then wait for 0.1 s instead of 0.5 s.
const crowdedBudgetMs = 1

const queues = new WeakMap<Environment, SliceQueue>()

/** The queue of an environment. A hub and its log share one event loop, and so one queue: two queues would spend two budgets. */
export function sliceQueueOf(environment: Environment): SliceQueue {
  let queue = queues.get(environment)
  if (!queue) {
    queue = createSliceQueue(environment)
    queues.set(environment, queue)
  }
  return queue
}

export function createSliceQueue(environment: Environment): SliceQueue {
  /** The slices that wait, from `first` on. */
  let waiting: (() => void)[] = []
  let first = 0
  let running = false
  /** When the budget of this turn is used up; undefined until a slice needs time in this turn. */
  let deadline: number | undefined
  /** The clock when it was last read in this turn. */
  let seenAt = 0
  let isCrowded = false

  function run(): void {
    running = true
    try {
      while (first < waiting.length && hasTime()) {
        const slice = waiting[first] as () => void
        first += 1
        slice()
      }
    } finally {
      // A slice that throws stops no other slice: the rest goes on at the end of this turn.
      letGoOfDone()
      running = false
    }
  }

  /** Not after every slice: in a rush thousands wait, and their copies were 43 of the 75 KB that each return allocated. */
  function letGoOfDone(): void {
    if (first * 2 < waiting.length) return
    waiting = waiting.slice(first)
    first = 0
  }

  function hasTime(): boolean {
    const now = environment.now()
    if (deadline === undefined) {
      deadline = now + (isCrowded ? crowdedBudgetMs : budgetMs)
      isCrowded = false
      environment.endOfTurn(startTurn)
    } else if (now < seenAt) {
      // The wall clock has stepped back, perhaps by an hour. The deadline is as much later, and all slices would run in this turn.
      deadline = Number.NEGATIVE_INFINITY
    }
    seenAt = now
    return now < deadline
  }

  function startTurn(): void {
    deadline = undefined
    if (waiting.length > first) run()
  }

  function add(slice: () => void): void {
    waiting.push(slice)
    if (!running) run()
  }

  return {
    add,
    take(slice) {
      return new Promise((resolve, reject) => {
        add(() => {
          try {
            resolve(slice())
          } catch (cause) {
            reject(cause)
          }
        })
      })
    },
    hasTime,
    makeWay() {
      isCrowded = true
    },
  }
}

/** Calls `each` with every item, `atATime` items per slice, until `each` returns false. `items` may change between slices. */
export async function walkInSlices<Item>(
  slices: SliceQueue,
  items: Iterable<Item>,
  each: (item: Item) => unknown,
  atATime = 512,
): Promise<void> {
  const walk = items[Symbol.iterator]()
  const walkSome = () => {
    for (let left = atATime; left > 0; left -= 1) {
      const { done, value } = walk.next()
      if (done || each(value) === false) return true
    }
    return false
  }
  for (let isDone = false; !isDone; ) isDone = await slices.take(walkSome)
}
