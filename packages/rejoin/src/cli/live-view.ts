import { stripVTControlCharacters } from 'node:util'
import type { ProgramHost } from './program-host.ts'

/** The last lines of a terminal, rewritten with every change. In a pipe nothing is shown. */
export interface LiveView {
  readonly isShown: boolean
  show(lines: readonly string[]): void
  /** Removes the lines, so that other output can follow. */
  clear(): void
}

export function createLiveView({ stderr, env }: Pick<ProgramHost, 'stderr' | 'env'>): LiveView {
  const isShown = stderr.isTTY === true && env.TERM !== 'dumb'
  let height = 0

  function clear(): void {
    if (height > 0) stderr.write(`\u001b[${height}A\r\u001b[J`)
    height = 0
  }

  return {
    isShown,
    show(lines) {
      if (!isShown) return
      // A line that the terminal wraps would take two rows, and the cursor would not go far enough back up.
      const most = (stderr.columns ?? 80) - 1
      const fitting = lines.map((line) => fit(line, most))
      const up = height > 0 ? `\u001b[${height}A\r` : ''
      stderr.write(`${up}${fitting.map((line) => `${line}\u001b[K\n`).join('')}\u001b[J`)
      height = lines.length
    },
    clear,
  }
}

function fit(line: string, most: number): string {
  const plain = stripVTControlCharacters(line)
  return plain.length <= most ? line : `${plain.slice(0, most - 1)}…`
}

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
