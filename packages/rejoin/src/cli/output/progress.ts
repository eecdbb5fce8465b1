import type { ProgramHost } from '../program-host.ts'

/** How far long work has come, in one line of a terminal that is written over. */
export interface Progress {
  show(text: () => string): void
  /** Leaves the line empty, for what is to be said next. */
  clear(): void
}

export function createProgress({ stderr }: ProgramHost, now: () => number = Date.now): Progress {
  let shownAt = Number.NEGATIVE_INFINITY
  let isShown = false
  return {
    show(text) {
      if (!stderr.isTTY || now() - shownAt < everyMs) return
      shownAt = now()
      isShown = true
      stderr.write(`\r\u001b[K${text()}`)
    },
    clear() {
      if (isShown) stderr.write('\r\u001b[K')
      isShown = false
    },
  }
}

// Faster than this a person cannot read.
const everyMs = 100
