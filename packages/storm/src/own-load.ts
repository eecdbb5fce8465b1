import { performance } from 'node:perf_hooks'
import process from 'node:process'

/** How busy the storm itself was. A storm without free processor time measures itself instead of the hub. */
export interface OwnLoad {
  /** For how many seconds the load was measured. */
  readonly seconds: number
  /** In how many of these seconds the event loop had hardly any free time. */
  readonly busySeconds: number
  /** Whether there was such a second. The delays of the report are then partly the storm's own. */
  readonly wasBottleneck: boolean
  /** Share of the time in which the event loop was busy, 0 to 1. */
  readonly busy: number
  /** Processor time, as a share of one core. A value far below `busy` means that other programs take the processor. */
  readonly cpu: number
  /** The longest delay of a timer. An event may have waited this long before its arrival was noted. */
  readonly worstDelayMs: number
}

export interface OwnLoadSample {
  /** Share of the second in which the event loop was busy, 0 to 1. */
  readonly busy: number
  /** Processor time in that second, as a share of one core. */
  readonly cpu: number
  /** How late the timer of the sample was. */
  readonly delayMs: number
}

export interface OwnLoadMeter {
  load(): OwnLoad
  stop(): void
}

/** Measures this process once a second. */
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
  const busySeconds = samples.filter(({ busy, delayMs }) => busy >= mostBusy || delayMs >= mostDelayMs).length
  return {
    seconds: samples.length,
    busySeconds,
    wasBottleneck: busySeconds > 0,
    busy: mean(({ busy }) => busy),
    cpu: mean(({ cpu }) => cpu),
    worstDelayMs: samples.reduce((worst, { delayMs }) => Math.max(worst, delayMs), 0),
  }
}

// The rest is needed for bursts.
const mostBusy = 0.9
// A person notices a delay of this length, and would blame the hub.
const mostDelayMs = 200
