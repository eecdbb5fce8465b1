import { stripVTControlCharacters } from 'node:util'
import type { ProgramHost } from '../program-host.ts'

/** Some lines at the end of a terminal that are written over as things change. In a pipe there is no such view. */
export interface LiveView {
  readonly isShown: boolean
  show(lines: readonly string[]): void
  /** Takes the lines away, for what is to be said next. */
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
      // A line that the terminal breaks would be two, and the way back up too short.
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
