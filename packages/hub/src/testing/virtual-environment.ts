import type { Environment } from '../environment.ts'

/** An environment whose time passes only when a test says so, and whose chance comes from a seed. */
export interface VirtualEnvironment extends Environment {
  /** Runs the tasks of this turn, and the tasks that they add, until none is left. Promises settle in between. */
  settle(): Promise<void>
  /** Lets time pass. Runs each timer at its moment, and settles after each. */
  advance(ms: number): Promise<void>
  /** Moves the wall clock alone, as an operator or NTP does. Timers are not affected. */
  stepClock(ms: number): void
}

export interface VirtualEnvironmentOptions {
  /**
   * The wall clock at the start, in milliseconds since 1970.
   * @defaultValue the first of January 2026, 00:00 UTC
   */
  now?: number | undefined
  /**
   * The seed of `random`. The same seed gives the same run.
   * @defaultValue 1
   */
  seed?: number | undefined
  /**
   * Waits a moment for other work in this process, and tells whether anything moved there. If so, `settle` looks again.
   * @defaultValue none: nothing else runs
   */
  isBusy?: (() => Promise<boolean>) | undefined
}

export function createVirtualEnvironment(options: VirtualEnvironmentOptions = {}): VirtualEnvironment {
  const random = createRandom(options.seed ?? 1)
  let wallClock = options.now ?? Date.UTC(2026, 0, 1)
  let elapsed = 0
  let dueInTurn: (() => void)[] = []
  const timers = new Set<{ at: number; task: () => void }>()

  async function settle(): Promise<void> {
    do {
      // A turn of the real event loop: after it, every promise that can settle has settled.
      await new Promise((resolve) => setImmediate(resolve))
      const tasks = dueInTurn
      dueInTurn = []
      for (const task of tasks) task()
      if (tasks.length > 0) await new Promise((resolve) => setImmediate(resolve))
    } while (dueInTurn.length > 0 || (await options.isBusy?.()))
  }

  return {
    now: () => wallClock,
    random,
    after(delayMs, task) {
      const timer = { at: elapsed + delayMs, task }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    endOfTurn(task) {
      dueInTurn.push(task)
    },
    heapUsed: () => 0,
    settle,
    async advance(ms) {
      const until = elapsed + ms
      await settle()
      for (;;) {
        const [next] = [...timers].filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at)
        if (!next) break
        timers.delete(next)
        wallClock += next.at - elapsed
        elapsed = next.at
        next.task()
        await settle()
      }
      wallClock += until - elapsed
      elapsed = until
    },
    stepClock(ms) {
      wallClock += ms
    },
  }
}

/** A small seeded generator (mulberry32): the same seed gives the same run on every machine. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
