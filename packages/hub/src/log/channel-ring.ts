import { isAfter, latest, origin, type Position } from '@rejoin/protocol'
import type { LogEvent, NewEvent, Window, WindowOptions } from './contract.ts'
import { indexAfter } from './in-order.ts'

/** The events one channel still holds, oldest first, and the place through which it has let go of them. */
export interface ChannelRing {
  readonly trimmedThrough: Position
  /** Where the channel was last declared void, `origin` if never. */
  readonly invalidatedThrough: Position
  /** When the last event was let go, while the channel holds none. */
  readonly idleSince: number | undefined
  push(entry: NewEvent, position: Position, at: number): LogEvent
  /** Lets go of everything, because it is no longer true. */
  invalidate(channel: string, position: Position, at: number): LogEvent
  trim(window: Required<WindowOptions>, now: number): void
  /** At most `limit` events after `after`, not past `through`. */
  between(after: Position, through: Position, limit: number): LogEvent[]
  held(): Pick<Window, 'events' | 'bytes' | 'oldest' | 'newest'>
}

export function createChannelRing(trimmedThrough: Position): ChannelRing {
  let events: LogEvent[] = []
  // Events before this index are gone. Shifting an array of thousands on every append would cost more than the append,
  // so the dead part is cut off only when it is half of the whole.
  let start = 0
  let bytes = 0
  let previous = origin
  let idleSince: number | undefined

  function dropOldest(now: number): void {
    const event = events[start] as LogEvent
    start += 1
    bytes -= byteCost(event)
    ring.trimmedThrough = latest(ring.trimmedThrough, event.position)
    if (start === events.length) idleSince = now
    if (start * 2 > events.length) {
      events = events.slice(start)
      start = 0
    }
  }

  const ring = {
    trimmedThrough,
    invalidatedThrough: origin,
    get idleSince() {
      return start === events.length ? idleSince : undefined
    },
    push(entry: NewEvent, position: Position, at: number): LogEvent {
      const event: LogEvent = { kind: 'event', ...entry, position, at, previous }
      events.push(event)
      bytes += byteCost(event)
      previous = position
      return event
    },
    invalidate(channel: string, position: Position, at: number): LogEvent {
      while (start < events.length) dropOldest(at)
      ring.trimmedThrough = position
      ring.invalidatedThrough = position
      idleSince = at
      const entry: LogEvent = { kind: 'invalidation', channel, type: '', data: '', position, at, previous }
      previous = position
      return entry
    },
    trim(window: Required<WindowOptions>, now: number): void {
      const tooOld = now - window.maxAgeMs
      for (let oldest = events[start]; oldest; oldest = events[start]) {
        const over = events.length - start > window.maxEvents || bytes > window.maxBytes || oldest.at < tooOld
        if (!over) return
        dropOldest(now)
      }
    },
    between(after: Position, through: Position, limit: number): LogEvent[] {
      const from = indexAfter(events, after, start)
      const found: LogEvent[] = []
      for (let index = from; index < events.length && found.length < limit; index += 1) {
        const event = events[index] as LogEvent
        if (isAfter(event.position, through)) break
        found.push(event)
      }
      return found
    },
    held() {
      const oldest = events[start]
      const newest = events.at(-1)
      return {
        events: events.length - start,
        bytes,
        ...(oldest && newest ? { oldest: oldest.position, newest: newest.position } : {}),
      }
    },
  }
  return ring
}

// UTF-16 length: the bytes this process holds are at most twice this, and the bound is about orders of magnitude.
function byteCost(event: LogEvent): number {
  return event.data.length + event.type.length
}
