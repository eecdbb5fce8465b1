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
  /** The events of these channels that stand between two places, both left out. */
  eventsBetween(channels: readonly string[], after: Place, before: Place | undefined): Place[]
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
  /** When it fell out of its window or was declared void, in true time; infinite while it is held. */
  trimmedAt: number
  /** When the log forgot that it had ever acknowledged it. */
  lostAt: number
}

export function comparePlaces(a: Place, b: Place): number {
  return a.log - b.log || comparePositions(a.position, b.position)
}

export function createTruth(): Truth {
  const places: Place[] = []
  const byId = new Map<string, Place>()
  const byChannel = new Map<string, Place[]>()

  function channelOf(name: string): Place[] {
    const events = byChannel.get(name) ?? []
    byChannel.set(name, events)
    return events
  }

  return {
    places,
    place: (id) => byId.get(id),
    eventsBetween(channels, after, before) {
      const found: Place[] = []
      for (const channel of channels) {
        const events = channelOf(channel)
        for (let at = events.length - 1; at >= 0; at -= 1) {
          const place = events[at] as Place
          if (comparePlaces(place, after) <= 0) break
          if (!before || comparePlaces(place, before) < 0) found.push(place)
        }
      }
      return found
    },
    note(given) {
      const place: Place = { ...given, trimmedAt: Infinity, lostAt: Infinity }
      places.push(place)
      byId.set(place.id, place)
      if (place.event && place.kind === 'event') {
        const events = channelOf(place.event.channel)
        // At the end, unless the log is one of the broken ones.
        let at = events.length
        while (at > 0 && comparePlaces(events[at - 1] as Place, place) > 0) at -= 1
        events.splice(at, 0, place)
      }
      return place
    },
  }
}
