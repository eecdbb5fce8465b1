/**
 * What a hub has to answer to a poll, worked out from nothing but what was published. It knows the promise of PROTOCOL.md and
 * none of our code: a list of everything that ever happened, of which a place is an index, and a window of so many events
 * per channel.
 */
export class PollModel {
  readonly #maxEvents: number
  readonly #entries: Entry[] = []
  /** How many entries had happened at the place that an id names. */
  readonly #places = new Map<string, number>()

  constructor(maxEvents: number) {
    this.#maxEvents = maxEvents
  }

  get head(): number {
    return this.#entries.length
  }

  published(event: ModelEvent): void {
    this.#entries.push({ kind: 'event', ...event })
    this.#places.set(event.id, this.head)
  }

  invalidated(channel: string): void {
    this.#entries.push({ kind: 'invalidation', channel })
  }

  ended(channel: string): void {
    this.#entries.push({ kind: 'end', channel })
  }

  hasEnded(channel: string): boolean {
    return this.#entries.some((entry) => entry.kind === 'end' && entry.channel === channel)
  }

  /** An id that a hub gave out as the place of everything that had happened by then. */
  reached(id: string): void {
    if (!this.#places.has(id)) this.#places.set(id, this.head)
  }

  /** Ids that a reader may come back with. */
  get ids(): string[] {
    return [...this.#places.keys()]
  }

  /** What the hub may answer; the first is what it owes, the others are allowed to one that has more in its memory. */
  answers({ names, types, start }: ModelPoll): ModelAnswer[] {
    const wanted = (from: number) =>
      this.#entries.slice(from).flatMap((entry) => {
        if (entry.kind !== 'event' || !names.some((name) => covers(name, entry.channel))) return []
        return types.length === 0 || types.includes(entry.type) ? [entry] : []
      })
    const isOver = names.every((name) => !name.endsWith('*') && this.hasEnded(name))
    if (names.every((name) => this.#isDeleted(name))) return [{ kind: 'deleted' }]
    // At the head of channels that have all ended there is nothing to wait for, so they are read from the beginning.
    if (start.from === 'now' && !isOver) return [{ kind: 'fresh', events: [], isOver }]
    const whole = this.#wholeAfter(names)
    if (start.from === 'earliest' || start.from === 'now') {
      const events = wanted(whole)
      if (whole === 0) return [{ kind: 'fresh', events, isOver }]
      return [{ kind: 'beheaded', reasons: [this.#isForced(names, 0) ? 'forced' : 'expired'], events, isOver }]
    }
    if (start.from === 'last') {
      const events = start.events === 0 ? [] : wanted(whole).slice(-start.events)
      return [{ kind: 'fresh', events, isOver, replay: events.length }]
    }
    const place = this.#places.get(start.cursor)
    if (place === undefined) return [{ kind: 'gap', reasons: start.reasons ?? ['unknown-id', 'epoch'], isOver }]
    const all = wanted(place)
    const resumed: ModelAnswer =
      isOver && all.length === 0 ? { kind: 'nothing-more' } : { kind: 'resumed', events: all, isOver }
    if (whole <= place) return [resumed]
    const isForced = this.#isForced(names, place)
    const gap: ModelAnswer = { kind: 'gap', reasons: [isForced ? 'forced' : 'expired'], isOver }
    if (isForced) return [gap]
    const eventsThrough = (id: string) => {
      const through = this.#places.get(id)
      if (through === undefined || through <= place) return undefined
      const rest = wanted(through)
      return all.slice(0, all.length - rest.length)
    }
    return [gap, resumed, { kind: 'resumed-then-gap', reasons: ['expired'], eventsThrough, isOver }]
  }

  /** It has ended, and was invalidated after that. */
  #isDeleted(name: string): boolean {
    const end = this.#entries.findIndex((entry) => entry.kind === 'end' && entry.channel === name)
    return end >= 0 && !name.endsWith('*') && this.#isForced([name], end)
  }

  #isForced(names: readonly string[], after: number): boolean {
    return this.#entries
      .slice(after)
      .some((entry) => entry.kind === 'invalidation' && names.some((name) => covers(name, entry.channel)))
  }

  /** The earliest place from which all these are whole. */
  #wholeAfter(names: readonly string[]): number {
    const counts = new Map<string, number>()
    for (let index = this.head - 1; index >= 0; index -= 1) {
      const { kind, channel } = this.#entries[index] as Entry
      if (!names.some((name) => covers(name, channel))) continue
      if (kind === 'invalidation') return index + 1
      if (kind !== 'event') continue
      const count = (counts.get(channel) ?? 0) + 1
      counts.set(channel, count)
      if (count > this.#maxEvents) return index + 1
    }
    return 0
  }
}

export interface ModelEvent {
  readonly id: string
  readonly channel: string
  readonly type: string
  readonly data: string
}

export interface ModelPoll {
  readonly names: readonly string[]
  /** None for all. */
  readonly types: readonly string[]
  readonly start:
    | { readonly from: 'now' }
    | { readonly from: 'earliest' }
    | { readonly from: 'last'; readonly events: number }
    | { readonly from: 'cursor'; readonly cursor: string; readonly reasons?: readonly string[] }
}

export type ModelAnswer =
  /** No cursor was sent. `isOver`: every channel has ended, and the reader is told so. */
  | {
      readonly kind: 'fresh' | 'resumed'
      readonly events: readonly ModelEvent[]
      readonly isOver: boolean
      /** How many of the last few that were asked for there are. */
      readonly replay?: number
    }
  /** `sync-required` for one of these reasons: the beginning was asked for and is gone. What is left follows. */
  | {
      readonly kind: 'beheaded'
      readonly reasons: readonly string[]
      readonly events: readonly ModelEvent[]
      readonly isOver: boolean
    }
  /** `sync-required` for one of these reasons, and nothing else: nothing happens meanwhile. */
  | { readonly kind: 'gap'; readonly reasons: readonly string[]; readonly isOver: boolean }
  /**
   * What the hub had in memory, and then `sync-required` for one of these reasons (§4.6). It names the position up to which the
   * reader was served: everything up to there has to be in the answer.
   */
  | {
      readonly kind: 'resumed-then-gap'
      readonly reasons: readonly string[]
      /** What a reader is owed up to the position of an id; undefined for an id that is not behind its cursor. */
      eventsThrough(id: string): readonly ModelEvent[] | undefined
      readonly isOver: boolean
    }
  /** 410. */
  | { readonly kind: 'deleted' }
  /** 204. */
  | { readonly kind: 'nothing-more' }

type Entry =
  | ({ readonly kind: 'event' } & ModelEvent)
  | { readonly kind: 'invalidation' | 'end'; readonly channel: string }

function covers(name: string, channel: string): boolean {
  return name.endsWith('*') ? channel.startsWith(name.slice(0, -1)) : name === channel
}
