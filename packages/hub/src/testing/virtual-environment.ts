import type { Environment } from '../environment.ts'

/** An environment in which time passes only when told to, and chance comes from a seed. */
export interface VirtualEnvironment extends Environment {
  /** Runs what is due in this turn, and what that makes due, until nothing is. Promises settle in between. */
  settle(): Promise<void>
  /** Lets time pass, running timers at their moment and settling after each. */
  advance(ms: number): Promise<void>
  /** Moves the wall clock alone, as an operator or NTP would; timers do not notice. */
  stepClock(ms: number): void
}

export interface VirtualEnvironmentOptions {
  /**
   * What the wall clock says at first, in milliseconds since 1970.
   * @defaultValue the first of January 2026, 00:00 UTC
   */
  now?: number
  /**
   * What chance comes from. The same seed gives the same run.
   * @defaultValue 1
   */
  seed?: number
  /**
   * Waits a moment for whatever else runs in this process, and tells whether something moved there: then `settle` looks again.
   * @defaultValue none: nothing else runs
   */
  isBusy?: () => Promise<boolean>
}

export function createVirtualEnvironment(options: VirtualEnvironmentOptions = {}): VirtualEnvironment {
  const random = createRandom(options.seed ?? 1)
  let wallClock = options.now ?? Date.UTC(2026, 0, 1)
  let elapsed = 0
  let dueInTurn: (() => void)[] = []
  const timers = new Set<{ at: number; task: () => void }>()

  async function settle(): Promise<void> {
    do {
      // A macrotask of the real loop: every promise that can settle has settled when it returns.
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
