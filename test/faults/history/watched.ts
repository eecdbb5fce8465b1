import type { History, UntimedLine } from './history.ts'

/** The same history, of which somebody else sees every line as it is written. */
export function watchedHistory(history: History, onLine: (line: UntimedLine) => void): History {
  return {
    ...history,
    write(line) {
      history.write(line)
      onLine(line)
    },
  }
}
