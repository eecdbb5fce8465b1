import { readFileSync } from 'node:fs'

/**
 * For how long, in ms, a thread of ours could have run while other programs had the processors: that of this process, or that of the
 * hub when it waited longer. Only Linux says so; elsewhere it is 0. Measured in steps, from which the larger one is taken.
 */
export function measureWaited(pids: readonly number[], onStep: (ms: number) => void): Waited {
  const files = ['self', ...pids].map((pid) => `/proc/${pid}/schedstat`)
  let before = files.map(waitedOf)
  let total = 0

  function step(): void {
    const now = files.map(waitedOf)
    // A process that was started again counts from 0.
    const ms = Math.max(...now.map((waited, index) => Math.max(0, waited - (before[index] as number))))
    before = now
    total += ms
    if (ms >= 1) onStep(ms)
  }

  const timer = setInterval(step, 500).unref()
  return {
    ms() {
      step()
      return total
    },
    close: () => clearInterval(timer),
  }
}

export interface Waited {
  /** Since the start. */
  ms(): number
  close(): void
}

function waitedOf(file: string): number {
  try {
    return Number(readFileSync(file, 'utf8').split(' ')[1]) / 1e6
  } catch {
    // Another system, or a process that is gone.
    return 0
  }
}
