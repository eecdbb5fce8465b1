import type { LogEvent } from '@rejoin/hub/log'
import { comparePositions, type Position } from '@rejoin/protocol'

/**
 * What really stands, and stood, in the log, kept beside it by the simulation. Every entry the log ever assigned is noted
 * with its id, so that what hubs and readers say can be judged by looking ids up, without any of the code under test.
 */
export interface Truth {
  /** All entries, in the order in which they came to stand in the log. */
  readonly entries: readonly Entry[]
  /** Where a log begins. */
  firstOf(log: number): Entry
  /** By id. An id that is not here was never given to an entry. */
  entry(id: string): Entry | undefined
  /** The events of these channels and patterns that stand between two entries, both left out, on the line of the second. */
  eventsBetween(names: readonly string[], after: Entry, before: Entry | undefined): Entry[]
  /** Where these channels and patterns were declared void between two entries. */
  invalidationsBetween(names: readonly string[], after: Entry, before: Entry | undefined): Entry[]
  /** The entries of one kind, of these channels and patterns, that a log on this line knows of after an entry. */
  knownAfter(kind: Entry['kind'], names: readonly string[], after: Entry, line: number): Entry[]
  /** Where a channel has ended, also on branches that were lost, in order. */
  endsOf(channel: string): readonly Entry[]
  /** What came to stand behind the end of its channel. */
  readonly behindEnds: readonly Entry[]
  /** A line of its own from here on: what its parent gets after `fork` is not part of it. Gives its number. */
  forkLine(parent: number, fork: Position): number
  /** Whether an entry is part of a line, by ancestry. */
  isOn(entry: Entry, line: number): boolean
  /** The newest entry of a line. */
  newestOn(line: number): Entry
  /** Whether a log on this line knows of an entry: it is part of the line, or was lost and is remembered. */
  isKnownOn(entry: Entry, line: number): boolean
  /** A log on this line has lost the entry, and goes by it all the same. */
  remember(entry: Entry, line: number): void
  /** Where a reader stands that was at this entry, on another line: at the fork, when the loss between the two is on record. */
  standingOn(entry: Entry, line: number): Entry
  /**
   * The same for a reader whose hub may have read records that are lost themselves by now: it has led the reader to their forks,
   * and goes on from there.
   */
  ledTo(entry: Entry, line: number): Entry
  /** Where channels of these names lost something between two entries, as far as it is on record. */
  lossesBetween(names: readonly string[], after: Entry, before: Entry | undefined): Entry[]
  /** Marks that were made where the log had gone on already, when a loss came to light late. */
  readonly lateMarks: { readonly channel: string; readonly position: Position; readonly loss: Entry }[]
  /** The line that counts in the end. */
  mainLine: number
  /** The newest event of each key of these channels and patterns at an entry. */
  valuesAt(names: readonly string[], at: Entry): Values
  note(entry: Omit<Entry, 'trimmedAt' | 'lostAt' | 'records'>): Entry
}

export interface Entry {
  readonly id: string
  readonly position: Position
  /** A log that lost everything and started anew is another log. */
  readonly log: number
  /** Which of the servers, or which time of its life, assigned it. A server that lost something goes on on another line. */
  readonly line: number
  /** A `loss` is told of a channel, at the position of a branch. */
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
  /** The fork that a reader at the lost entry goes on from. */
  readonly fork: Entry
  /** The branch with which it was put on record. */
  readonly by: Entry
}

/** The newest event of each key, by channel and key. */
export type Values = Map<string, Entry>

/** Under which name its value is retained; undefined for an event without a key. */
export function valueName({ event }: Entry): string | undefined {
  return event?.key === undefined ? undefined : `${event.channel} ${event.key}`
}

export function isAmong(names: readonly string[], channel: string): boolean {
  return names.some((name) => (name.endsWith('*') ? channel.startsWith(name.slice(0, -1)) : name === channel))
}

export function compareEntries(a: Entry, b: Entry): number {
  return a.log - b.log || comparePositions(a.position, b.position)
}

export function createTruth(): Truth {
  const entries: Entry[] = []
  const byId = new Map<string, Entry>()
  const byChannel = new Map<string, Entry[]>()
  const ends = new Map<string, Entry[]>()
  const behindEnds: Entry[] = []
  const lines: { parent: number; fork: Position }[] = []
  const remembered = new Map<Entry, Set<number>>()
  let mainLine = 0

  function isOn(entry: Entry, line: number): boolean {
    for (let at: number | undefined = line; at !== undefined; ) {
      if (entry.line === at) return true
      const forked: { parent: number; fork: Position } | undefined = lines[at]
      if (!forked || comparePositions(entry.position, forked.fork) > 0) return false
      at = forked.parent
    }
    return false
  }

  function isKnownOn(entry: Entry, line: number): boolean {
    const on = remembered.get(entry)
    return isOn(entry, line) || (on !== undefined && [...on].some((each) => isOn({ ...entry, line: each }, line)))
  }

  function ofKindAfter(kind: Entry['kind'], names: readonly string[], after: Entry): Entry[] {
    const found: Entry[] = []
    for (const [channel, entries] of byChannel) {
      if (!isAmong(names, channel)) continue
      for (let at = entries.length - 1; at >= 0; at -= 1) {
        const entry = entries[at] as Entry
        if (compareEntries(entry, after) <= 0) break
        if (entry.kind === kind) found.push(entry)
      }
    }
    return found
  }

  function between(kind: Entry['kind'], names: readonly string[], after: Entry, before: Entry | undefined): Entry[] {
    const found = ofKindAfter(kind, names, after)
    return before ? found.filter((entry) => isOn(entry, before.line) && compareEntries(entry, before) < 0) : found
  }

  function addTo(lists: Map<string, Entry[]>, entry: Entry, channel: string): void {
    const list = lists.get(channel) ?? []
    lists.set(channel, list)
    // At the end, unless the log is one of the broken ones.
    let at = list.length
    while (at > 0 && compareEntries(list[at - 1] as Entry, entry) > 0) at -= 1
    list.splice(at, 0, entry)
  }

  function hasEnded(channel: string, entry: Entry): boolean {
    const counts = (end: Entry) => end.log === entry.log && end.lostAt === Infinity && isOn(end, entry.line)
    return ends.get(channel)?.some(counts) ?? false
  }

  function followRecords(entry: Entry, line: number, recordOf: (at: Entry) => LossRecord | undefined): Entry {
    let at = entry
    for (let record = recordOf(at); record && !isOn(at, line); record = recordOf(at)) at = record.fork
    return at
  }

  return {
    entries,
    lateMarks: [],
    firstOf: (log) => entries.find((entry) => entry.log === log) as Entry,
    entry: (id) => byId.get(id),
    behindEnds,
    eventsBetween: (names, after, before) => between('event', names, after, before),
    lossesBetween: (names, after, before) => between('loss', names, after, before),
    isOn,
    newestOn: (line) => entries.findLast((entry) => entry.kind !== 'loss' && isOn(entry, line)) as Entry,
    standingOn: (entry, line) => followRecords(entry, line, (at) => at.records.find(({ by }) => isKnownOn(by, line))),
    ledTo: (entry, line) =>
      followRecords(entry, line, (at) => at.records.find(({ by }) => isKnownOn(by, line)) ?? at.records.at(-1)),
    isKnownOn,
    knownAfter: (kind, names, after, line) => ofKindAfter(kind, names, after).filter((entry) => isKnownOn(entry, line)),
    remember(entry, line) {
      remembered.set(entry, (remembered.get(entry) ?? new Set()).add(line))
    },
    forkLine(parent, fork) {
      lines[entries.length] = { parent, fork }
      return entries.length
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
        for (const entry of list) {
          if (entry.log !== at.log || entry.lostAt < Infinity || compareEntries(entry, at) > 0) continue
          if (entry.kind === 'loss' || !isOn(entry, at.line)) continue
          apply(values, entry, channel)
        }
      }
      return values
    },
    note(given) {
      const entry: Entry = { ...given, trimmedAt: Infinity, lostAt: Infinity, records: [] }
      entries.push(entry)
      if (entry.kind !== 'loss') byId.set(entry.id, entry)
      const { kind, event } = entry
      if (!event) return entry
      if ((kind === 'event' || kind === 'live') && hasEnded(event.channel, entry)) behindEnds.push(entry)
      if (kind === 'event' || kind === 'invalidation' || kind === 'loss') addTo(byChannel, entry, event.channel)
      if (kind === 'end') addTo(ends, entry, event.channel)
      return entry
    },
  }
}

function apply(values: Values, entry: Entry, channel: string): void {
  const name = valueName(entry)
  if (entry.kind === 'invalidation') {
    for (const [each, { event }] of values) if (event?.channel === channel) values.delete(each)
  } else if (name !== undefined && entry.event?.forget) values.delete(name)
  else if (name !== undefined) values.set(name, entry)
}
