import type { Environment } from '../environment.ts'

/**
 * Lets many readers catch up without stopping everything else: each does a slice of work at a time, in the order in which
 * they came, and what does not fit into this turn of the event loop goes on in the next.
 */
export interface CatchUpQueue {
  /** Runs `slice` now if this turn has time left for it, else in a later turn. */
  add(slice: () => void): void
}

// A turn spent on catching up delays live events by this much at most.
const budgetMs = 5

export function createCatchUpQueue(environment: Environment): CatchUpQueue {
  let waiting: (() => void)[] = []
  let running = false
  /** When this turn's time is used up; undefined until somebody needed time in this turn. */
  let deadline: number | undefined

  function run(): void {
    running = true
    let next = 0
    while (next < waiting.length && hasTime()) {
      const slice = waiting[next] as () => void
      next += 1
      slice()
    }
    waiting = waiting.slice(next)
    running = false
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

  return {
    add(slice) {
      waiting.push(slice)
      if (!running) run()
    },
  }
}
