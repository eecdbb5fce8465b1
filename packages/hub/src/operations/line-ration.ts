/**
 * Rations the log lines about single readers. A person can follow a hundred lines in ten seconds. Further lines are counted, and
 * reported in one line after the ten seconds. Without the ration, 16 minutes of readers that come and go made 866,000 lines.
 */
export function createLineRation(tell: (counts: Readonly<Record<string, number>>) => void): LineRation {
  let left = linesPerWindow
  let counts: Record<string, number> = {}
  let timer: NodeJS.Timeout | undefined

  function turn(): void {
    clearTimeout(timer)
    timer = undefined
    left = linesPerWindow
    const told = counts
    counts = {}
    if (Object.keys(told).length > 0) tell(told)
  }

  return {
    take(event) {
      timer ??= setTimeout(turn, windowMs).unref()
      if (left > 0) {
        left -= 1
        return true
      }
      counts[event] = (counts[event] ?? 0) + 1
      return false
    },
    flush: turn,
  }
}

export interface LineRation {
  /** Whether a line about this event may be written. If not, the line is counted. */
  take(event: string): boolean
  /** Reports the lines that were counted so far. */
  flush(): void
}

const linesPerWindow = 100
const windowMs = 10_000
