/**
 * A point in the log. Positions rise strictly and are never used twice. `ms` is the wall clock, but never goes back;
 * `seq` counts within one millisecond. A log with a counter clock leaves `ms` at 0.
 */
export interface Position {
  readonly ms: number
  readonly seq: number
}

/** The position before every event of every log. */
export const origin: Position = { ms: 0, seq: 0 }

/** Negative when `a` stands before `b`, positive when after, 0 when they are the same position. */
export function comparePositions(a: Position, b: Position): number {
  return a.ms - b.ms || a.seq - b.seq
}

export function isAfter(a: Position, b: Position): boolean {
  return comparePositions(a, b) > 0
}

export function isSame(a: Position, b: Position): boolean {
  return a.ms === b.ms && a.seq === b.seq
}

export function latest(a: Position, b: Position): Position {
  return isAfter(a, b) ? a : b
}
