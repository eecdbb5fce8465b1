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
}

// A turn spent on slices delays live events by this much at most.
const budgetMs = 5

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
      deadline = environment.now() + budgetMs
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
