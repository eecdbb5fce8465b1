import { isAfter, isSame, latest, origin, type Position } from '@rejoin/protocol'
import type { LogEvent, NewEvent, Window, WindowOptions } from './contract.ts'
import { endedWindow } from './ended.ts'
import { eventBytes, retainedBytes } from './event-bytes.ts'
import { indexAfter, type Stretch } from './in-order.ts'
import type { RetainedSize } from './retained.ts'

/**
 * The events one channel still holds, oldest first, and the position through which it has let go of them. A class, because
 * an idle channel is kept for long: its closures would cost a kilobyte.
 */
export class ChannelRing {
  /** The newest position that is no longer held. */
  trimmedThrough: Position
  /** Where the channel was last invalidated, `origin` if never. */
  invalidatedThrough: Position = origin
  /** Its end, once it has one. */
  ended: LogEvent | undefined

  readonly #window: Required<WindowOptions>
  readonly #log: HeldBytes
  #events: LogEvent[] = []
  // Events before this index are gone. Shifting an array of thousands on every append would cost more than the append,
  // so the dead part is cut off only when it is half of the whole.
  #start = 0
  #bytes = 0
  #previous: Position = origin
  #emptySince = 0
  /** The newest event of each key. Most channels have none. */
  #retained: Map<string, LogEvent> | undefined
  #retainedBytes = 0

  /** @param log - counts what all channels hold together */
  constructor(trimmedThrough: Position, window: Required<WindowOptions>, log: HeldBytes) {
    this.trimmedThrough = trimmedThrough
    this.#window = window
    this.#log = log
  }

  /** The oldest event that it holds. */
  get oldest(): LogEvent | undefined {
    return this.#events[this.#start]
  }

  /** When the last event was let go, while the channel holds none and retains none. */
  get idleSince(): number | undefined {
    const isEmpty = this.#start === this.#events.length && !this.#retained?.size
    return isEmpty ? this.#emptySince : undefined
  }

  /** Its last event or invalidation, to which the next event is linked. */
  get newest(): Position {
    return this.#previous
  }

  /** What its oldest event names as the one before it; its newest position while it holds none. */
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

  /** Nothing comes after this. */
  end(channel: string, position: Position, at: number): LogEvent {
    this.ended = { kind: 'end', channel, type: '', data: '', position, at, previous: this.#previous }
    if (this.#start === this.#events.length) this.#emptySince = at
    return this.ended
  }

  /** Lets go of everything, because it is no longer true. */
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
    for (let oldest = this.#events[this.#start]; oldest; oldest = this.#events[this.#start]) {
      const count = this.#events.length - this.#start
      if (count <= window.maxEvents && this.#bytes <= window.maxBytes && oldest.at >= tooOld) return
      this.dropOldest(now)
    }
  }

  /** The events after `after`, not past `through`. Good until the next change. */
  between(after: Position, through: Position): Stretch<LogEvent> {
    const from = indexAfter(this.#events, after, this.#start)
    return { items: this.#events, from, to: indexAfter(this.#events, through, from) }
  }

  /** The event that stands at a position, if it is still held. */
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

  /** Lets go of the oldest event. There has to be one. */
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
