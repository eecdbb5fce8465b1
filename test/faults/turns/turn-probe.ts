import { closeSync, openSync, readSync } from 'node:fs'
import { PerformanceObserver } from 'node:perf_hooks'

/**
 * Measures how long the turns of this process's event loop are, while somebody wants to know: it asks for the end of every turn,
 * so the loop never sleeps meanwhile. Time in which the system ran other processes instead is taken off, and so are pauses of
 * the garbage collector: neither is anything that the code of a turn decides.
 */
export interface TurnProbe {
  start(): void
  /** The longest turn since the start, in ms. */
  stop(): Promise<number>
}

export function probeTurns(): TurnProbe {
  // Linux tells how long this thread ran, and how long it was ready and had to wait, in ns.
  const file = openSync('/proc/thread-self/schedstat', 'r')
  process.once('exit', () => closeSync(file))
  const text = Buffer.alloc(64)
  const thread = () => {
    const [ran = 0, waited = 0] = text
      .toString('latin1', 0, readSync(file, text, 0, 64, 0))
      .split(' ')
      .map(Number)
    return { ranMs: ran / 1e6, waitedMs: waited / 1e6 }
  }
  let pauses: { start: number; end: number }[] = []
  const collector = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries())
      pauses.push({ start: startTime, end: startTime + duration })
  })
  let turns: { start: number; end: number; ownMs: number }[] = []
  let start = 0
  let before = thread()
  let isOn = false

  function begin(): void {
    before = thread()
    start = performance.now()
    setImmediate(turn)
  }

  function turn(): void {
    const end = performance.now()
    if (end - start > worthLookingAtMs) {
      const { ranMs, waitedMs } = thread()
      // On a machine that is shared, the time that was waited is not all that was lost; and what was run is told by the tick.
      const ownMs = Math.min(end - start - (waitedMs - before.waitedMs), ranMs - before.ranMs + tickMs)
      turns.push({ start, end, ownMs })
    }
    if (isOn) begin()
  }

  return {
    start() {
      isOn = true
      turns = []
      pauses = []
      collector.observe({ entryTypes: ['gc'] })
      begin()
    },
    async stop() {
      // The collector tells of its pauses a little later.
      await new Promise((resolve) => setTimeout(resolve, 20))
      isOn = false
      collector.disconnect()
      const own = turns.map(({ start, end, ownMs }) => {
        const paused = pauses.map((pause) => Math.min(end, pause.end) - Math.max(start, pause.start))
        return ownMs - paused.filter((ms) => ms > 0).reduce((sum, ms) => sum + ms, 0)
      })
      return Math.max(0, ...own)
    },
  }
}

const worthLookingAtMs = 2
const tickMs = 4
