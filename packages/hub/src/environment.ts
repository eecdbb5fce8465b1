import { getHeapStatistics } from 'node:v8'
import { oldSpaceBytes } from './old-space.ts'

/**
 * The clock, the timers and the chance of a hub and its log. They are an argument, so that one seed replays one history and
 * tests need no sleeps.
 */
export interface Environment {
  /** Wall clock in milliseconds. It may step in either direction. */
  now(): number
  /** A number from 0 up to, but not including, 1. */
  random(): number
  /** Runs `task` after `delayMs`. Must not keep the process alive. */
  after(delayMs: number, task: () => void): Cancel
  /** Runs `task` at the end of this turn of the event loop, after everything that is already due. */
  endOfTurn(task: () => void): void
  /** The share of the heap's limit that is in use, from 0 to 1. Above 0.85 the hub tells readers longer retry times. */
  heapUsed(): number
}

export type Cancel = () => void

const oldSpace = oldSpaceBytes([...process.execArgv, ...(process.env.NODE_OPTIONS ?? '').split(/\s+/)])

/** The environment of this machine: the default of a hub. Pass it to a log that you open without a hub. */
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
    return used_heap_size / Math.min(heap_size_limit, oldSpace)
  },
}
