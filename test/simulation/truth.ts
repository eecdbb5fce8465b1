import type { LogEvent } from '@rejoin/hub'
import { comparePositions, type Position } from '@rejoin/protocol'

/**
 * What really stands, and stood, in the log, kept beside it by the simulation. Every place the log ever assigned is noted
 * with its id, so that what hubs and readers say can be judged by looking ids up, without any of the code under test.
 */
export interface Truth {
  /** All places, in the order in which they came to stand in the log. */
  readonly places: readonly Place[]
  /** Where a log begins. */
  firstOf(log: number): Place
  /** By id. An id that is not here was never given to a place. */
  place(id: string): Place | undefined
  /** The events of these channels and patterns that stand between two places, both left out, on the line of the second. */
  eventsBetween(names: readonly string[], after: Place, before: Place | undefined): Place[]
  /** Where these channels and patterns were declared void between two places. */
  invalidationsBetween(names: readonly string[], after: Place, before: Place | undefined): Place[]
  /** The places of one kind, of these channels and patterns, that a log on this line knows of after a place. */
  knownAfter(kind: Place['kind'], names: readonly string[], after: Place, line: number): Place[]
  /** Where a channel has ended, also on branches that were lost, in order. */
  endsOf(channel: string): readonly Place[]
  /** What came to stand behind the end of its channel. */
  readonly behindEnds: readonly Place[]
  /** A line of its own from here on: what its parent gets after `fork` is not part of it. Gives its number. */
  forkLine(parent: number, fork: Position): number
  /** Whether a place is part of a line, by ancestry. */
  isOn(place: Place, line: number): boolean
  /** The newest place of a line. */
  newestOn(line: number): Place
  /** Whether a log on this line knows of a place: it is part of the line, or was lost and is remembered. */
  isKnownOn(place: Place, line: number): boolean
  /** A log on this line has lost the place, and goes by it all the same. */
  remember(place: Place, line: number): void
  /** Where a reader stands that was at this place, on another line: at the fork, when the loss between the two is on record. */
  standingOn(place: Place, line: number): Place
  /**
   * The same for a reader whose hub may have read records that are lost themselves by now: it has led the reader to their forks,
   * and goes on from there.
   */
  ledTo(place: Place, line: number): Place
  /** Where channels of these names lost something between two places, as far as it is on record. */
  lossesBetween(names: readonly string[], after: Place, before: Place | undefined): Place[]
  /** The line that counts in the end. */
  mainLine: number
  /** The newest event of each key of these channels and patterns at a place. */
  valuesAt(names: readonly string[], at: Place): Values
  note(place: Omit<Place, 'trimmedAt' | 'lostAt' | 'records'>): Place
}

export interface Place {
  readonly id: string
  readonly position: Position
  /** A log that lost everything and started anew is another log. */
  readonly log: number
  /** Which of the servers, or which time of its life, assigned it. A server that lost something goes on on another line. */
  readonly line: number
  /** A `loss` is told of a channel, at the place of a branch. */
  readonly kind: 'event' | 'live' | 'invalidation' | 'end' | 'branch' | 'loss'
  readonly event?: LogEvent
  /** What was published here, as far as it came from a publisher. */
  readonly name?: string
  /** In true time, as all of these. */
  readonly notedAt: number
  /** When it fell out of its window or was declared void; infinite while it is held. */
  trimmedAt: number
  /** When the log forgot that it had ever acknowledged it. */
  lostAt: number
  /** Where it was put on record that this was lost. */
  readonly records: LossRecord[]
}

export interface LossRecord {
  /** The fork that a reader at the lost place goes on from. */
  readonly fork: Place
  /** The branch with which it was put on record. */
  readonly by: Place
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
  const lines: { parent: number; fork: Position }[] = []
  const remembered = new Map<Place, Set<number>>()
  let mainLine = 0

  function isOn(place: Place, line: number): boolean {
    for (let at: number | undefined = line; at !== undefined; ) {
      if (place.line === at) return true
      const forked: { parent: number; fork: Position } | undefined = lines[at]
      if (!forked || comparePositions(place.position, forked.fork) > 0) return false
      at = forked.parent
    }
    return false
  }

  function isKnownOn(place: Place, line: number): boolean {
    const on = remembered.get(place)
    return isOn(place, line) || (on !== undefined && [...on].some((each) => isOn({ ...place, line: each }, line)))
  }

  function ofKindAfter(kind: Place['kind'], names: readonly string[], after: Place): Place[] {
    const found: Place[] = []
    for (const [channel, places] of byChannel) {
      if (!isAmong(names, channel)) continue
      for (let at = places.length - 1; at >= 0; at -= 1) {
        const place = places[at] as Place
        if (comparePlaces(place, after) <= 0) break
        if (place.kind === kind) found.push(place)
      }
    }
    return found
  }

  function between(kind: Place['kind'], names: readonly string[], after: Place, before: Place | undefined): Place[] {
    const found = ofKindAfter(kind, names, after)
    return before ? found.filter((place) => isOn(place, before.line) && comparePlaces(place, before) < 0) : found
  }

  function addTo(lists: Map<string, Place[]>, place: Place, channel: string): void {
    const list = lists.get(channel) ?? []
    lists.set(channel, list)
    // At the end, unless the log is one of the broken ones.
    let at = list.length
    while (at > 0 && comparePlaces(list[at - 1] as Place, place) > 0) at -= 1
    list.splice(at, 0, place)
  }

  function hasEnded(channel: string, place: Place): boolean {
    const counts = (end: Place) => end.log === place.log && end.lostAt === Infinity && isOn(end, place.line)
    return ends.get(channel)?.some(counts) ?? false
  }

  function followRecords(place: Place, line: number, recordOf: (at: Place) => LossRecord | undefined): Place {
    let at = place
    for (let record = recordOf(at); record && !isOn(at, line); record = recordOf(at)) at = record.fork
    return at
  }

  return {
    places,
    firstOf: (log) => places.find((place) => place.log === log) as Place,
    place: (id) => byId.get(id),
    behindEnds,
    eventsBetween: (names, after, before) => between('event', names, after, before),
    lossesBetween: (names, after, before) => between('loss', names, after, before),
    isOn,
    newestOn: (line) => places.findLast((place) => place.kind !== 'loss' && isOn(place, line)) as Place,
    standingOn: (place, line) => followRecords(place, line, (at) => at.records.find(({ by }) => isKnownOn(by, line))),
    ledTo: (place, line) =>
      followRecords(place, line, (at) => at.records.find(({ by }) => isKnownOn(by, line)) ?? at.records.at(-1)),
    isKnownOn,
    knownAfter: (kind, names, after, line) => ofKindAfter(kind, names, after).filter((place) => isKnownOn(place, line)),
    remember(place, line) {
      remembered.set(place, (remembered.get(place) ?? new Set()).add(line))
    },
    forkLine(parent, fork) {
      lines[places.length] = { parent, fork }
      return places.length
    },
    get mainLine() {
      return mainLine
    },
    set mainLine(line) {
      mainLine = line
    },
    invalidationsBetween: (names, after, before) => between('invalidation', names, after, before),
    endsOf: (channel) => ends.get(channel) ?? [],
    valuesAt(names, at) {
      const values: Values = new Map()
      for (const [channel, list] of byChannel) {
        if (!isAmong(names, channel)) continue
        for (const place of list) {
          if (place.log !== at.log || place.lostAt < Infinity || comparePlaces(place, at) > 0) continue
          if (place.kind === 'loss' || !isOn(place, at.line)) continue
          apply(values, place, channel)
        }
      }
      return values
    },
    note(given) {
      const place: Place = { ...given, trimmedAt: Infinity, lostAt: Infinity, records: [] }
      places.push(place)
      if (place.kind !== 'loss') byId.set(place.id, place)
      const { kind, event } = place
      if (!event) return place
      if ((kind === 'event' || kind === 'live') && hasEnded(event.channel, place)) behindEnds.push(place)
      if (kind === 'event' || kind === 'invalidation' || kind === 'loss') addTo(byChannel, place, event.channel)
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
