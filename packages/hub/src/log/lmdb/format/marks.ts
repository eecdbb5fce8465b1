import { isAfter, isSame, origin, type Position } from '@rejoin/protocol'

/**
 * The marks of a log, oldest first: the first position of each branch that was opened on a restored copy. The events between the
 * copy and the mark are lost, and nothing tells which channels had some. So each mark counts for all channels, new ones included.
 * No event has the position of a mark.
 */
export type Marks = readonly Position[]

/** `forgotten` is a mark that had to go. Channels that the log does not know count as trimmed through it. */
export function addMark(marks: Marks, mark: Position): { marks: Marks; forgotten: Position } {
  const all = [...marks, mark]
  const forgotten = all.at(-1 - mostMarks) ?? origin
  return { marks: all.slice(-mostMarks), forgotten }
}

// A mark takes some 30 bytes. A reader from before a forgotten mark is told by the marks and the links of events behind it.
export const mostMarks = 100

/** The first mark after a position and not past another. */
export function nextMark(marks: Marks, after: Position, through: Position): Position | undefined {
  const mark = marks.find((position) => isAfter(position, after))
  return mark && !isAfter(mark, through) ? mark : undefined
}

/** The last mark after a position and before another. Without that other position, the last mark of all. */
export function lastMarkBetween(marks: Marks, after: Position, before: Position | undefined): Position | undefined {
  const mark = before ? marks.findLast((position) => isAfter(before, position)) : marks.at(-1)
  return mark && isAfter(mark, after) ? mark : undefined
}

export function isMark(marks: Marks, position: Position): boolean {
  return marks.some((mark) => isSame(mark, position))
}
