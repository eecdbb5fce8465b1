import type { Environment } from './environment.ts'

/**
 * Lets long work go on without stopping everything else: it is done in slices, in the order in which they came, and what
 * does not fit into this turn of the event loop goes on in the next. A slice should take a millisecond or two.
 */
export interface SliceQueue {
  /** Runs `slice` now if this turn has time left for it, else in a later turn. */
  add(slice: () => void): void
  /** The same, for a result; a promise that `slice` returns is waited for, without holding up the others. */
  take<Result>(slice: () => Result | Promise<Result>): Promise<Result>
  /** Whether this turn has time left. For work that can stop anywhere. */
  hasTime(): boolean
  /**
   * A reader has come. Others may wait behind it, and Node accepts one connection in each turn of the event loop: the slices of
   * the next turn get less time, so that a publisher with a new connection does not wait for all readers that catch up.
   */
  makeWay(): void
}

// A turn spent on slices delays live events by this much at most.
const budgetMs = 5
// The same while readers come in. A hundred new connections then wait for a tenth of a second, not for half a second.
const crowdedBudgetMs = 1

const queues = new WeakMap<Environment, SliceQueue>()

/**
 * The queue of an environment. A hub and its log work in one event loop, so they share one queue: with a budget each, a
 * turn would take as many budgets as there are queues.
 */
export function sliceQueueOf(environment: Environment): SliceQueue {
  let queue = queues.get(environment)
  if (!queue) {
    queue = createSliceQueue(environment)
    queues.set(environment, queue)
  }
  return queue
}

export function createSliceQueue(environment: Environment): SliceQueue {
  let waiting: (() => void)[] = []
  let running = false
  /** When this turn's time is used up; undefined until somebody needed time in this turn. */
  let deadline: number | undefined
  let isCrowded = false

  function run(): void {
    running = true
    let next = 0
    try {
      while (next < waiting.length && hasTime()) {
        const slice = waiting[next] as () => void
        next += 1
        slice()
      }
    } finally {
      // A slice that throws costs itself; the others go on at the end of this turn.
      waiting = waiting.slice(next)
      running = false
    }
  }

  function hasTime(): boolean {
    if (deadline === undefined) {
      deadline = environment.now() + (isCrowded ? crowdedBudgetMs : budgetMs)
      isCrowded = false
      environment.endOfTurn(startTurn)
    }
    return environment.now() < deadline
  }

  function startTurn(): void {
    deadline = undefined
    if (waiting.length > 0) run()
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

/** Calls `each` with every item, some in a slice, until it returns false. The items may change in between, as a `Map` may. */
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
