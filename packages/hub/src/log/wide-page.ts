import { comparePositions, isAfter, type Position } from '@rejoin/protocol'
import type { LogEvent } from './contract.ts'
import { eventBytes } from './event-bytes.ts'
import type { PartRead } from './merged-page.ts'
import { addLoss, type Lost, type NameRead, type PageRange } from './name-read.ts'

/**
 * One page of more channels than can be read at once. They are added some at a time, and the end of the page moves closer as
 * it fills: of most channels nothing is read then. It takes no more memory than a page, however many there are.
 */
export interface WidePage {
  /** Behind this position nothing is needed any more. */
  readonly through: Position
  /** Events to read of one channel, when so many are read before they are added. */
  share(channels: number): number
  add(reads: readonly NameRead[]): void
  /** What all that was added amounts to. */
  result(): NameRead
}

export function createWidePage({ through, limit }: PageRange): WidePage {
  let end = through
  let lost: Lost | undefined
  // A heap with the last of them in front, which is the next to go. Kept in order, each channel would cost a walk of the page.
  const events: LogEvent[] = []
  let bytes = 0

  function addPart(part: PartRead): void {
    if (isAfter(end, part.through)) end = part.through
    for (const event of part.events) {
      if (isAfter(event.position, end)) break
      push(events, event)
      bytes += eventBytes(event)
    }
    while (isPastEnd()) bytes -= eventBytes(pop(events))
    while (isOver()) {
      bytes -= eventBytes(pop(events))
      end = (events[0] as LogEvent).position
    }
  }

  function isPastEnd(): boolean {
    const [last] = events
    return last !== undefined && isAfter(last.position, end)
  }

  /** Whether it is full without the last of them. */
  function isOver(): boolean {
    const [last] = events
    if (!last || events.length === 1) return false
    return events.length > limit.events || bytes - eventBytes(last) >= limit.bytes
  }

  return {
    get through() {
      return end
    },
    // A page of each would be far more than the one page that is wanted; one event of each might end it too soon.
    share: (channels) => Math.max(1, Math.min(limit.events, Math.ceil((4 * limit.events) / Math.max(1, channels)))),
    add(reads) {
      for (const read of reads) if ('wholeAfter' in read) lost = addLoss(lost, read)
      if (!lost) for (const read of reads) addPart(read as PartRead)
    },
    result() {
      return lost ?? { events: events.sort((a, b) => comparePositions(a.position, b.position)), through: end }
    },
  }
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

/** Takes the last in order off. */
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
