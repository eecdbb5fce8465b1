import { closeSync, openSync, readSync } from 'node:fs'
import { PerformanceObserver } from 'node:perf_hooks'

/**
 * Measures how long the turns of this process's event loop are. It asks for the end of every turn, so the loop never sleeps
 * while it runs. Time in which the system ran other processes instead is taken off, and so are pauses of the garbage
 * collector: neither is anything that the code of a turn decides.
 */
export interface TurnProbe {
  /** Of the turns since this was last asked, the longest, in ms. */
  longest(): Promise<number>
  stop(): void
}

export function probeTurns(): TurnProbe {
  // Linux tells in its second number how long this thread was ready and had to wait, in ns.
  const file = openSync('/proc/thread-self/schedstat', 'r')
  const text = Buffer.alloc(64)
  const waitedMs = () => Number(text.toString('latin1', 0, readSync(file, text, 0, 64, 0)).split(' ')[1]) / 1e6
  let pauses: { start: number; end: number }[] = []
  const collector = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries())
      pauses.push({ start: startTime, end: startTime + duration })
  })
  collector.observe({ entryTypes: ['gc'] })
  let turns: { start: number; end: number; waitedMs: number }[] = []
  let start = performance.now()
  let waited = waitedMs()
  let stopped = false

  function turn(): void {
    const end = performance.now()
    if (end - start > worthLookingAtMs) turns.push({ start, end, waitedMs: waitedMs() - waited })
    if (stopped) return
    waited = waitedMs()
    start = performance.now()
    setImmediate(turn)
  }
  setImmediate(turn)

  return {
    async longest() {
      // The collector tells of its pauses a little later.
      await new Promise((resolve) => setTimeout(resolve, 20))
      const own = turns.map(({ start, end, waitedMs }) => {
        const paused = pauses.map((pause) => Math.min(end, pause.end) - Math.max(start, pause.start))
        return end - start - waitedMs - paused.filter((ms) => ms > 0).reduce((sum, ms) => sum + ms, 0)
      })
      turns = []
      pauses = []
      return Math.max(0, ...own)
    },
    stop() {
      stopped = true
      collector.disconnect()
      setImmediate(() => closeSync(file))
    },
  }
}

const worthLookingAtMs = 2
