import { comparePositions, isAfter, type Position } from '@rejoin/protocol'
import type { LogEvent } from './contract.ts'
import { eventBytes } from './event-bytes.ts'
import type { PartRead } from './merged-page.ts'
import { addLoss, type Lost, type PageRange, type SelectorRead } from './selector-read.ts'

/**
 * One page of more channels than can be read at once. The caller adds the channels some at a time. As the page fills, its end
 * moves closer, so most channels need not be read at all. It takes the memory of one page, however many channels there are.
 */
export interface WidePage {
  /** The end of the page so far. Events after this position are not needed. */
  readonly through: Position
  /** How many events to read of each channel, when so many channels are read before they are added. */
  share(channels: number): number
  add(reads: readonly SelectorRead[]): void
  /** The page of everything that was added, or the loss. */
  result(): SelectorRead
}

export function createWidePage({ through, limit }: PageRange): WidePage {
  let lost: Lost | undefined
  // A heap with the last event in front, which is the next to go. In a sorted list, each channel would cost a walk of the page.
  const events: LogEvent[] = []
  let bytes = 0

  function addPart(part: PartRead): void {
    if (isAfter(page.through, part.through)) page.through = part.through
    for (const event of part.events) {
      if (isAfter(event.position, page.through)) break
      push(events, event)
      bytes += eventBytes(event)
    }
    while (isPastEnd()) bytes -= eventBytes(pop(events))
    while (isOver()) {
      bytes -= eventBytes(pop(events))
      page.through = (events[0] as LogEvent).position
    }
  }

  function isPastEnd(): boolean {
    const [last] = events
    return last !== undefined && isAfter(last.position, page.through)
  }

  /** Whether the page is full without its last event. */
  function isOver(): boolean {
    const [last] = events
    if (!last || events.length === 1) return false
    return events.length > limit.events || bytes - eventBytes(last) >= limit.bytes
  }

  const page: WidePage & { through: Position } = {
    // A field, not a getter: see `Draft.isOverBudget`.
    through,
    // A full page of each channel would be far more than one page. One event of each channel might end the page too soon.
    share: (channels) => Math.max(1, Math.min(limit.events, Math.ceil((4 * limit.events) / Math.max(1, channels)))),
    add(reads) {
      for (const read of reads) if ('wholeAfter' in read) lost = addLoss(lost, read)
      if (!lost) for (const read of reads) addPart(read as PartRead)
    },
    result() {
      const inOrder = () => events.sort((a, b) => comparePositions(a.position, b.position))
      return lost ?? { events: inOrder(), through: page.through }
    },
  }
  return page
}

function push(heap: LogEvent[], event: LogEvent): void {
  let at = heap.length
  while (at > 0) {
    const parent = (at - 1) >> 1
    if (!isAfter(event.position, (heap[parent] as LogEvent).position)) break
    heap[at] = heap[parent] as LogEvent
    at = parent
  }
  heap[at] = event
}

/** Takes off the event with the last position. */
function pop(heap: LogEvent[]): LogEvent {
  const top = heap[0] as LogEvent
  const event = heap.pop() as LogEvent
  if (heap.length === 0) return top
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= heap.length) break
    const right = heap[child + 1]
    if (right && isAfter(right.position, (heap[child] as LogEvent).position)) child += 1
    if (!isAfter((heap[child] as LogEvent).position, event.position)) break
    heap[at] = heap[child] as LogEvent
    at = child
  }
  heap[at] = event
  return top
}
