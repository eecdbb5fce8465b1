import { getHeapStatistics } from 'node:v8'

/**
 * Time, chance and scheduling. The hub and its log take them as an argument: with a seeded environment one seed replays one
 * history, and tests need no sleeps.
 */
export interface Environment {
  /** Wall clock in milliseconds. May step in either direction; nothing but ages and ids is derived from it. */
  now(): number
  /** A number from 0 up to, but not including, 1. */
  random(): number
  /** Runs `task` after `delayMs`. Must not keep the process alive. */
  after(delayMs: number, task: () => void): Cancel
  /** Runs `task` at the end of this turn of the event loop, after everything that is already due. */
  endOfTurn(task: () => void): void
  /** The part of the heap's limit that is in use, from 0 to 1. Readers are asked to wait longer when it runs out. */
  heapUsed(): number
}

export type Cancel = () => void

/** The environment of this machine, which a hub uses by default. Pass it to a log that you open without a hub. */
export const systemEnvironment: Environment = {
  now: Date.now,
  random: Math.random,
  after(delayMs, task) {
    const timer = setTimeout(task, delayMs)
    timer.unref()
    return () => clearTimeout(timer)
  },
  endOfTurn: setImmediate,
  heapUsed() {
    const { used_heap_size, heap_size_limit } = getHeapStatistics()
    return used_heap_size / heap_size_limit
  },
}
