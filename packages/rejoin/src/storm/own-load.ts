import { performance } from 'node:perf_hooks'
import process from 'node:process'

/** How busy the storm itself was. A tool that has no time left measures itself instead of the hub. */
export interface OwnLoad {
  /** For how many seconds it was looked at. */
  readonly seconds: number
  /** In how many of them the event loop had hardly a free moment. */
  readonly busySeconds: number
  /** Part of the time for which the event loop had something to do, 0 to 1. */
  readonly busy: number
  /** Processor time, as a part of one core. Much less than `busy` means that other programs are in the way. */
  readonly cpu: number
  /** How late a timer was at worst: for so long an event may have waited here before its arrival was noted. */
  readonly worstDelayMs: number
}

export interface OwnLoadSample {
  /** Part of the second for which the event loop had something to do, 0 to 1. */
  readonly busy: number
  /** Processor time in that second, as a part of one core. */
  readonly cpu: number
  /** How late the timer of the sample was. */
  readonly delayMs: number
}

export interface OwnLoadMeter {
  load(): OwnLoad
  stop(): void
}

/** Looks at this process once a second. */
export function measureOwnLoad(): OwnLoadMeter {
  const samples: OwnLoadSample[] = []
  let before = look()
  const timer = setInterval(() => {
    const now = look()
    const ms = now.at - before.at
    samples.push({
      busy: performance.eventLoopUtilization(now.loop, before.loop).utilization,
      cpu: (now.cpu.user + now.cpu.system - before.cpu.user - before.cpu.system) / 1000 / ms,
      delayMs: Math.max(0, ms - everyMs),
    })
    before = now
  }, everyMs)
  return { load: () => ownLoadOf(samples), stop: () => clearInterval(timer) }
}

const everyMs = 1000

function look() {
  return { at: performance.now(), loop: performance.eventLoopUtilization(), cpu: process.cpuUsage() }
}

export function ownLoadOf(samples: readonly OwnLoadSample[]): OwnLoad {
  const mean = (of: (sample: OwnLoadSample) => number) =>
    samples.reduce((total, sample) => total + of(sample), 0) / Math.max(1, samples.length)
  return {
    seconds: samples.length,
    busySeconds: samples.filter(({ busy, delayMs }) => busy >= mostBusy || delayMs >= mostDelayMs).length,
    busy: mean(({ busy }) => busy),
    cpu: mean(({ cpu }) => cpu),
    worstDelayMs: samples.reduce((worst, { delayMs }) => Math.max(worst, delayMs), 0),
  }
}

// What is left beyond this is needed to take up what comes in bursts.
const mostBusy = 0.9
// A person notices such a delay, and would blame the hub for it.
const mostDelayMs = 200
