import { isAfter, isSame, latest, origin, type Position } from '@rejoin/protocol'
import type { Complete } from '../with-defaults.ts'
import type { LogEvent, NewEvent, Window, WindowOptions } from './contract.ts'
import { endedWindow } from './ended.ts'
import { eventBytes, retainedBytes } from './event-bytes.ts'
import { indexAfter, type Stretch } from './in-order.ts'
import type { RetainedSize } from './retained.ts'

/**
 * The events that one channel holds, oldest first, and the position through which it has let go of events. It is a class, because
 * idle channels are kept for long, and the closures of each would cost a kilobyte.
 */
export class ChannelRing {
  /** The newest position that the channel no longer holds. */
  trimmedThrough: Position
  /** The position of the last invalidation, `origin` if there was none. */
  invalidatedThrough: Position = origin
  /** The entry of the channel's end. */
  ended: LogEvent | undefined

  readonly #window: Complete<WindowOptions>
  readonly #log: HeldBytes
  #events: LogEvent[] = []
  // Events before this index are gone. To shift an array of thousands on every append would cost more than the append, so
  // the dead part is cut off only when it is half of the array.
  #start = 0
  #bytes = 0
  #previous: Position = origin
  #emptySince = 0
  /** When an event from ahead of the clock was found to be the oldest. Its age counts from then on. */
  #foundAheadAt: number | undefined
  /** The newest event of each key. Most channels have no keys. */
  #retained: Map<string, LogEvent> | undefined
  #retainedBytes = 0

  /** @param log - counts the bytes of all channels together */
  constructor(trimmedThrough: Position, window: Complete<WindowOptions>, log: HeldBytes) {
    this.trimmedThrough = trimmedThrough
    this.#window = window
    this.#log = log
  }

  get oldest(): LogEvent | undefined {
    return this.#events[this.#start]
  }

  /** When the channel let go of its last event; undefined while it holds or retains an event. */
  get idleSince(): number | undefined {
    const isEmpty = this.#start === this.#events.length && !this.#retained?.size
    return isEmpty ? this.#emptySince : undefined
  }

  /** The position of the last event or invalidation, to which the next event is linked. */
  get newest(): Position {
    return this.#previous
  }

  /** The position that the oldest event names as `previous`; the newest position while the channel holds no event. */
  get previous(): Position {
    return this.#events[this.#start]?.previous ?? this.#previous
  }

  push(entry: NewEvent, position: Position, at: number): LogEvent {
    const event: LogEvent = { kind: 'event', ...entry, position, at, previous: this.#previous }
    this.#events.push(event)
    const bytes = eventBytes(event)
    this.#bytes += bytes
    this.#log.heldBytes += bytes
    this.#previous = position
    if (event.key !== undefined) this.#retain(event.key, event)
    return event
  }

  end(channel: string, position: Position, at: number): LogEvent {
    this.ended = { kind: 'end', channel, type: '', data: '', position, at, previous: this.#previous }
    if (this.#start === this.#events.length) this.#emptySince = at
    return this.ended
  }

  invalidate(channel: string, position: Position, at: number): LogEvent {
    while (this.#start < this.#events.length) this.dropOldest(at)
    this.#retained = undefined
    this.#retainedBytes = 0
    this.trimmedThrough = position
    this.invalidatedThrough = position
    this.#emptySince = at
    const previous = this.#previous
    this.#previous = position
    return { kind: 'invalidation', channel, type: '', data: '', position, at, previous }
  }

  trim(now: number): void {
    const window = this.#window
    const tooOld = now - window.maxAgeMs
    this.#emptySince = Math.min(this.#emptySince, now)
    for (let oldest = this.#events[this.#start]; oldest; oldest = this.#events[this.#start]) {
      const count = this.#events.length - this.#start
      const since = this.#agesSince(oldest, now)
      if (count <= window.maxEvents && this.#bytes <= window.maxBytes && since >= tooOld) return
      this.dropOldest(now)
    }
  }

  /** The clock may have been ahead when the event came. Otherwise such an event, and all behind it, would stay until then. */
  #agesSince({ at }: LogEvent, now: number): number {
    this.#foundAheadAt = at > now ? Math.min(this.#foundAheadAt ?? now, now) : undefined
    return this.#foundAheadAt ?? at
  }

  /** The events after `after`, not past `through`. The result is good until the next change of the ring. */
  between(after: Position, through: Position): Stretch<LogEvent> {
    const from = indexAfter(this.#events, after, this.#start)
    return { items: this.#events, from, to: indexAfter(this.#events, through, from) }
  }

  /** The event at a position, if the channel still holds it. */
  at(position: Position): LogEvent | undefined {
    const event = this.#events[indexAfter(this.#events, position, this.#start) - 1]
    return event && isSame(event.position, position) && isAfter(position, this.trimmedThrough) ? event : undefined
  }

  held(): Pick<Window, 'events' | 'bytes' | 'oldest' | 'newest' | 'ended' | 'deleted'> {
    const oldest = this.#events[this.#start]
    const newest = this.#events.at(-1)
    return {
      events: this.#events.length - this.#start,
      bytes: this.#bytes,
      ...(oldest && newest ? { oldest: oldest.position, newest: newest.position } : {}),
      ...(this.ended ? endedWindow(this.ended.position, this.invalidatedThrough) : {}),
    }
  }

  retained(): Iterable<LogEvent> {
    return this.#retained?.values() ?? []
  }

  retainedAt(key: string): LogEvent | undefined {
    return this.#retained?.get(key)
  }

  get retainedSize(): RetainedSize {
    return { keys: this.#retained?.size ?? 0, bytes: this.#retainedBytes }
  }

  #retain(key: string, event: LogEvent): void {
    this.#retained ??= new Map()
    const before = this.#retained.get(key)
    if (before) this.#retainedBytes -= retainedBytes(before)
    if (event.forget) {
      this.#retained.delete(key)
    } else {
      this.#retained.set(key, event)
      this.#retainedBytes += retainedBytes(event)
    }
  }

  /** The channel has to hold an event. */
  dropOldest(now: number): void {
    const event = this.#events[this.#start] as LogEvent
    this.#start += 1
    const bytes = eventBytes(event)
    this.#bytes -= bytes
    this.#log.heldBytes -= bytes
    this.trimmedThrough = latest(this.trimmedThrough, event.position)
    this.#emptySince = now
    if (this.#start * 2 > this.#events.length) {
      this.#events = this.#events.slice(this.#start)
      this.#start = 0
    }
  }
}

export interface HeldBytes {
  heldBytes: number
}
