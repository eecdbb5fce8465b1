import type { LogEvent } from '@rejoin/hub'
import { comparePositions, type Position } from '@rejoin/protocol'

/**
 * What really stands, and stood, in the log, kept beside it by the simulation. Every place the log ever assigned is noted
 * with its id, so that what hubs and readers say can be judged by looking ids up, without any of the code under test.
 */
export interface Truth {
  /** All places, in the order in which they came to stand in the log. */
  readonly places: readonly Place[]
  /** By id. An id that is not here was never given to a place. */
  place(id: string): Place | undefined
  /** The events of these channels and patterns that stand between two places, both left out. */
  eventsBetween(names: readonly string[], after: Place, before: Place | undefined): Place[]
  /** Where these channels and patterns were declared void between two places. */
  invalidationsBetween(names: readonly string[], after: Place, before: Place | undefined): Place[]
  /** Where a channel has ended, also on branches that were lost, in order. */
  endsOf(channel: string): readonly Place[]
  /** What came to stand behind the end of its channel. */
  readonly behindEnds: readonly Place[]
  /** Where the branch starts that left this place behind. */
  branchAfter(lost: Place): Place | undefined
  /** The newest event of each key of these channels and patterns at a place. */
  valuesAt(names: readonly string[], at: Place): Values
  note(place: Omit<Place, 'trimmedAt' | 'lostAt'>): Place
}

export interface Place {
  readonly id: string
  readonly position: Position
  /** A log that lost everything and started anew is another log. */
  readonly log: number
  readonly kind: 'event' | 'live' | 'invalidation' | 'end' | 'branch'
  readonly event?: LogEvent
  /** What was published here, as far as it came from a publisher. */
  readonly name?: string
  /** In true time, as all of these. */
  readonly notedAt: number
  /** When it fell out of its window or was declared void; infinite while it is held. */
  trimmedAt: number
  /** When the log forgot that it had ever acknowledged it. */
  lostAt: number
}

/** The newest event of each key, by channel and key. */
export type Values = Map<string, Place>

/** Under which name its value is retained; undefined for an event without a key. */
export function valueName({ event }: Place): string | undefined {
  return event?.key === undefined ? undefined : `${event.channel} ${event.key}`
}

export function isAmong(names: readonly string[], channel: string): boolean {
  return names.some((name) => (name.endsWith('*') ? channel.startsWith(name.slice(0, -1)) : name === channel))
}

export function comparePlaces(a: Place, b: Place): number {
  return a.log - b.log || comparePositions(a.position, b.position)
}

export function createTruth(): Truth {
  const places: Place[] = []
  const byId = new Map<string, Place>()
  const byChannel = new Map<string, Place[]>()
  const ends = new Map<string, Place[]>()
  const behindEnds: Place[] = []

  function between(kind: Place['kind'], names: readonly string[], after: Place, before: Place | undefined): Place[] {
    const found: Place[] = []
    for (const [channel, places] of byChannel) {
      if (!isAmong(names, channel)) continue
      for (let at = places.length - 1; at >= 0; at -= 1) {
        const place = places[at] as Place
        if (comparePlaces(place, after) <= 0) break
        if (place.kind === kind && (!before || comparePlaces(place, before) < 0)) found.push(place)
      }
    }
    return found
  }

  function addTo(lists: Map<string, Place[]>, place: Place, channel: string): void {
    const list = lists.get(channel) ?? []
    lists.set(channel, list)
    // At the end, unless the log is one of the broken ones.
    let at = list.length
    while (at > 0 && comparePlaces(list[at - 1] as Place, place) > 0) at -= 1
    list.splice(at, 0, place)
  }

  function hasEnded(channel: string, log: number): boolean {
    return ends.get(channel)?.some((end) => end.log === log && end.lostAt === Infinity) ?? false
  }

  return {
    places,
    place: (id) => byId.get(id),
    behindEnds,
    eventsBetween: (names, after, before) => between('event', names, after, before),
    invalidationsBetween: (names, after, before) => between('invalidation', names, after, before),
    branchAfter: (lost) =>
      places.find((place) => place.kind === 'branch' && (place.log > lost.log || place.notedAt >= lost.lostAt)),
    endsOf: (channel) => ends.get(channel) ?? [],
    valuesAt(names, at) {
      const values: Values = new Map()
      for (const [channel, list] of byChannel) {
        if (!isAmong(names, channel)) continue
        for (const place of list) {
          if (place.log !== at.log || place.lostAt < Infinity || comparePlaces(place, at) > 0) continue
          apply(values, place, channel)
        }
      }
      return values
    },
    note(given) {
      const place: Place = { ...given, trimmedAt: Infinity, lostAt: Infinity }
      places.push(place)
      byId.set(place.id, place)
      const { kind, event } = place
      if (!event) return place
      if ((kind === 'event' || kind === 'live') && hasEnded(event.channel, place.log)) behindEnds.push(place)
      if (kind === 'event' || kind === 'invalidation') addTo(byChannel, place, event.channel)
      if (kind === 'end') addTo(ends, place, event.channel)
      return place
    },
  }
}

function apply(values: Values, place: Place, channel: string): void {
  const name = valueName(place)
  if (place.kind === 'invalidation') {
    for (const [each, { event }] of values) if (event?.channel === channel) values.delete(each)
  } else if (name !== undefined && place.event?.forget) values.delete(name)
  else if (name !== undefined) values.set(name, place)
}
