/**
 * Rations the lines about single readers. A hundred in ten seconds are what a person can follow; what is over that is counted
 * and told in one line when the ten seconds are over. Without it, 16 minutes of readers that come and go were 866,000 lines.
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
  /** Whether a line of this event may be written. If not, it is counted. */
  take(event: string): boolean
  /** Tells what was counted so far. */
  flush(): void
}

const linesPerWindow = 100
const windowMs = 10_000
