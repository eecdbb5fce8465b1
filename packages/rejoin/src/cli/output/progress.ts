import type { ProgramHost } from '../program-host.ts'

/** The progress of long work, in one line of a terminal that is rewritten. */
export interface Progress {
  show(text: () => string): void
  /** Empties the line, so that other output can follow. */
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

// A person cannot read faster.
const everyMs = 100
