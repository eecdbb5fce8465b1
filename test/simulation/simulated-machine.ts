import type { Environment } from '@rejoin/hub'
import type { World } from './virtual-world.ts'

/**
 * A computer that a hub runs on: its clock may be wrong and be stepped, it may be paused, and it may die. Whatever reaches
 * it from outside comes through `run`, so that nothing happens on one that is dead, and later on one that is paused.
 */
export interface Machine {
  readonly environment: Environment
  readonly alive: boolean
  readonly paused: boolean
  run(task: () => void): void
  stepClock(ms: number): void
  pause(): void
  resume(): void
  kill(): void
}

/** When the virtual history begins. */
export const beginning = Date.UTC(2026, 0, 1)

// How long a turn of an event loop lasts. Long enough for others to fall into it.
const longestTurnMs = 3

// Work that goes on in promises alone never lets time pass. It looks at the clock for its slices: a busy instant does so some
// thousand times.
const mostLooksInAnInstant = 100_000

/** @param onEndless - told of work that goes on without end while no time passes. That work is made to fail. */
export function createMachine(world: World, clockErrorMs: number, onEndless: () => void): Machine {
  let clockError = clockErrorMs
  let instant = 0
  let looks = 0
  let alive = true
  let paused = false
  let missed: (() => void)[] = []
  let turn: (() => void)[] = []

  function run(task: () => void): void {
    if (!alive) return
    if (paused) missed.push(task)
    else task()
  }

  function endTurn(): void {
    const tasks = turn
    turn = []
    for (const task of tasks) world.after(0, () => run(task))
  }

  function now(): number {
    looks = world.now === instant ? looks + 1 : 0
    instant = world.now
    if (looks > mostLooksInAnInstant) {
      looks = 0
      onEndless()
      throw new Error('Something goes on without end, and time stands still.')
    }
    return Math.floor(beginning + world.now + clockError)
  }

  return {
    environment: {
      now,
      random: world.chance.number,
      after: (delayMs, task) => world.after(delayMs, () => run(task)),
      endOfTurn(task) {
        if (turn.length === 0) world.after(world.chance.between(0, longestTurnMs), () => run(endTurn))
        turn.push(task)
      },
      heapUsed: () => 0,
    },
    get alive() {
      return alive
    },
    get paused() {
      return paused
    },
    run,
    stepClock(ms) {
      clockError += ms
    },
    pause() {
      paused = true
    },
    resume() {
      paused = false
      const late = missed
      missed = []
      for (const task of late) world.after(0, () => run(task))
    },
    kill() {
      alive = false
      missed = []
    },
  }
}
