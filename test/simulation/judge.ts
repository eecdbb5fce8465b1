import { comparePositions } from '@rejoin/protocol'
import { readFrames, type WireFrame } from './frames.ts'
import { createReadersState, type Retained } from './readers-state.ts'
import { compareEntries, type Entry, isAmong, type Truth } from './truth.ts'
import type { World } from './virtual-world.ts'

/** What has to hold in every history. */
export const invariants = {
  'unannounced-gap': 'no reader passes over an event without being told',
  'lost-write': 'once all faults are over, every reader gets what it is owed, or is told',
  'skipped-survivor': 'a loss on record is announced behind everything that the log still has from before it',
  'deleted-survivor': 'once all faults are over, a reader of the beginning gets every event that the log still has',
  'false-gap': 'no reader is told of a gap while everything after its cursor is held',
  duplicate: 'no event reaches a reader twice, and no stream holds one twice',
  order: 'events come in the order of the log',
  'moved-cursor': 'hello never moves the cursor of a reader that sent one',
  'stale-snapshot': 'a snapshot holds everything up to the entry it is said to stand at',
  'wrong-id': 'an id is that of its event, and of an entry that the log has assigned',
  'published-twice': 'one idempotency key makes one event',
  'private-leak': 'nothing is sent to a reader whose rights this hub knows to be gone',
  'torn-frame': 'every write is made of whole frames',
  'wrong-state':
    'retained values, with all later events applied, are the newest of each key at the entry of the reader',
  'false-finish': 'a reader is sent away for good only when all its channels have ended and it has everything',
  'never-finished': 'once all faults are over, a reader of channels that have ended is sent away for good',
  'behind-the-end': 'nothing is published to a channel that has ended, and only such a channel rejects',
  'late-live': 'a live event reaches those who are here, and nobody who comes later',
  'early-nothing': 'a poll that says there is nothing has seen everything that the log held when it was asked',
  'endless-work': 'no hub works on without end',
} as const

export type Invariant = keyof typeof invariants

export interface Violation {
  readonly invariant: Invariant
  readonly message: string
  readonly at: number
}

/** What a reader has asked for. */
export interface Wanted {
  /** Channels and patterns. */
  readonly names: readonly string[]
  /** All, when there are none. */
  readonly types: readonly string[]
  /** Whether events have to say their channel. */
  readonly showsChannel: boolean
}

export interface Judge {
  readonly violations: readonly Violation[]
  accuse(invariant: Invariant, message: string): void
  /** Follows what one receiver is given: a connection what the hub writes to it, a reader what its handlers get. */
  follow(who: string, wanted: Wanted): Receipts
  /** Judges what a hub writes to one connection. */
  watch(connection: Connection): Watch
}

export interface Watch {
  /** Judges one write of a stream. */
  bytes(bytes: Uint8Array): void
  /** Judges the frames of an answer to a poll. */
  frames(frames: readonly WireFrame[]): void
  /** Judges an answer that says there is nothing more to come back for. */
  nothingMore(): void
}

export interface Connection {
  readonly who: string
  readonly wanted: Wanted
  /** The cursor that the hub saw. */
  readonly requested: string | null
  /** Whether it asked for all that its channels ever held. */
  readonly asksForAll: boolean
  /** The lines of the log that the hub has known since then, and the one that it is on its way to. */
  linesSince(time: number): readonly number[]
  /** When the log told the hub what it knew when the reader came. */
  readonly heardAt: number
  /** The line that its tail is on. */
  tailLine(): number
  /** Whether its rights are gone as far as this hub has been told. */
  isRevoked(): boolean
  /** Whether the hub had been handed this entry, or one behind it, when the reader came. */
  hadSeen(entry: Entry): boolean
  onFrame(frame: WireFrame): void
}

/** One line of receipts, from an entry on. */
export interface Receipts {
  /** Everything wanted up to here was given, or was told to be gone. */
  readonly entry: Entry | undefined
  start(entry: Entry): void
  /** It starts anew, from an entry that is not known yet. */
  forget(): void
  event(entry: Entry): void
  /** An id without an event: everything before it must have been given. */
  mark(entry: Entry): void
  gap(entry: Entry, retained?: Retained): void
  /** Sent away for good, by a hub that may know any of these lines. */
  finish(lines: readonly number[]): void
  /** Judges the state that the reader has made of retained values and events. */
  checkState(): void
  /** All its channels have ended. */
  readonly hasEnds: boolean
  /** What is owed now and was not given. */
  missing(): Entry[]
  /** What was not given of the events before the first loss on record, when nothing else is gone up to an entry. */
  survivorsBefore(end: Entry): Entry[]
  /** The entry was lost by the log, so that a gap has to be announced. */
  readonly isStranded: boolean
}

export interface JudgeOptions {
  readonly world: World
  readonly truth: Truth
  /** Channels and patterns whose newest values are retained. */
  readonly retain: readonly string[]
  onStateChecked(): void
}

export function createJudge({ world, truth, retain, onStateChecked }: JudgeOptions): Judge {
  const violations: Violation[] = []

  function accuse(invariant: Invariant, message: string): void {
    violations.push({ invariant, message, at: world.now })
  }

  function follow(who: string, { names, types }: Wanted): Receipts {
    let entry: Entry | undefined
    let given = new Set<Entry>()
    let toldAt: Entry | undefined
    const state = createReadersState({
      // Who is given some types only cannot tell what the others did to a value.
      ...{ truth, names, retain, isWhole: types.length === 0 },
      accuse: (message) => accuse('wrong-state', `${who} ${message}`),
      onChecked: onStateChecked,
    })
    const isWanted = (event: Entry) => types.length === 0 || types.includes((event.event as { type: string }).type)

    const isLost = (of: Entry) => of.lostAt <= world.now || of.log !== truth.entries.at(-1)?.log

    /** Where the reader stands as seen from a line, which may be another one than that it read on. */
    const standing = (line: number) => entry && truth.ledTo(entry, line)

    function owedBefore(end: Entry | undefined): Entry[] {
      const line = end?.line ?? truth.mainLine
      const from = standing(line)
      if (!from) return []
      return truth
        .eventsBetween(names, from, end)
        .filter((event) => isWanted(event) && !isLost(event) && !given.has(event) && truth.isOn(event, line))
    }

    /** Whether the loss counts for a reader: it is not told again where it was told behind the loss, before this second mark. */
    const countsOn = (line: number) => (loss: Entry) =>
      !isLost(loss) &&
      !truth.lateMarks.some(
        (late) =>
          late.loss === loss &&
          toldAt !== undefined &&
          truth.isOn(toldAt, line) &&
          comparePositions(toldAt.position, late.position) >= 0,
      )

    function pass(end: Entry): void {
      const owed = owedBefore(end)
      const from = standing(end.line)
      const isElsewhere = from && (from.log !== end.log || !truth.isOn(from, end.line))
      if (owed.length > 0) accuse('unannounced-gap', `${who} came to ${nameOf(end)} without ${owed.map(nameOf).join()}`)
      else if (from && ((isLost(from) && !isLost(end)) || isElsewhere)) {
        accuse('unannounced-gap', `${who} came from ${nameOf(from)}, which the log has lost, to ${nameOf(end)}`)
      } else if (from && truth.invalidationsBetween(names, from, end).some((each) => !isLost(each))) {
        accuse('unannounced-gap', `${who} came to ${nameOf(end)} past an invalidation`)
      } else if (from && truth.lossesBetween(names, from, end).some(countsOn(end.line))) {
        accuse('unannounced-gap', `${who} came to ${nameOf(end)} past a loss that was on record`)
      }
      entry = end
    }

    return {
      get entry() {
        return entry
      },
      get isStranded() {
        const at = standing(truth.mainLine)
        if (!at) return false
        return isLost(at) || truth.lossesBetween(names, at, undefined).some(countsOn(truth.mainLine))
      },
      get hasEnds() {
        return names.every((name) => truth.endsOf(name).some((end) => !isLost(end) && truth.isOn(end, truth.mainLine)))
      },
      start(at) {
        entry = at
      },
      forget() {
        entry = undefined
        toldAt = undefined
        given = new Set()
        state.forget()
      },
      event(event) {
        const at = standing(event.line)
        if (given.has(event)) accuse('duplicate', `${who} got ${nameOf(event)} again`)
        else if (at && truth.isOn(at, event.line) && compareEntries(event, at) <= 0) {
          accuse('order', `${who} got ${nameOf(event)} when it was at ${nameOf(at)}`)
        } else pass(event)
        given.add(event)
        state.apply(event)
      },
      mark(at) {
        const before = standing(at.line)
        if (!before || !truth.isOn(before, at.line) || compareEntries(at, before) > 0) pass(at)
      },
      gap(at, retained) {
        entry = at
        toldAt = at
        given = new Set()
        state.replace(at, retained, isLost(at))
      },
      finish(lines) {
        const blame = (why: string) => accuse('false-finish', `${who} was sent away for good, ${why}`)
        // One that the log has lost counts until the hub can know.
        const counts = (end: Entry) => lines.some((line) => truth.isOn(end, line))
        const ends = names.flatMap((name) => truth.endsOf(name).find(counts) ?? [])
        if (ends.length < names.length) return blame('and not all its channels have ended')
        if (!entry) return blame('from nowhere')
        const last = ends.reduce((a, b) => (compareEntries(a, b) > 0 ? a : b))
        const owed = owedBefore(last)
        if (owed.length > 0) blame(`without ${owed.map(nameOf).join()}`)
      },
      checkState() {
        if (entry && !isLost(entry)) state.check(entry)
      },
      missing: () => owedBefore(undefined),
      survivorsBefore(end) {
        const from = standing(end.line)
        if (!from || isLost(from) || isLost(end) || from.log !== end.log || !truth.isOn(from, end.line)) return []
        const counts = (each: Entry) => !isLost(each) && truth.isOn(each, end.line)
        const [mark] = truth.lossesBetween(names, from, undefined).filter(counts).sort(compareEntries)
        // A loss that came to light late is told where the log had gone on, also by a hub that has yet to hear that the record of
        // it was lost.
        const isLate = truth.lateMarks.some(
          ({ channel, position }) => isAmong(names, channel) && comparePositions(position, from.position) > 0,
        )
        const all = truth.eventsBetween(names, from, undefined).filter((each) => truth.isOn(each, end.line))
        if (!mark || isLate || all.some(({ trimmedAt }) => trimmedAt <= world.now)) return []
        if (truth.invalidationsBetween(names, from, undefined).length > 0) return []
        return owedBefore(mark)
      },
    }
  }

  function watch(connection: Connection): Watch {
    const { who, wanted, requested, linesSince, isRevoked, hadSeen, onFrame } = connection
    const cameAt = world.now
    let lastWriteAt = cameAt
    const receipts = follow(who, wanted)
    const decoder = new TextDecoder()

    function entryOf(id: string | undefined): Entry | undefined {
      const entry = id === undefined ? undefined : truth.entry(id)
      if (id !== undefined && !entry) accuse('wrong-id', `${who} was given ${id}, which is no entry of the log`)
      return entry
    }

    function hello(id: string | undefined): void {
      if (id === undefined) return
      if (requested !== null && id !== requested) {
        accuse('moved-cursor', `${who} came with ${requested} and was greeted with ${id}`)
        return
      }
      const entry = entryOf(id)
      if (entry && connection.asksForAll) checkBeginning(entry)
      if (entry) receipts.start(entry)
    }

    /** Greeted with an entry, and not told of a gap, it takes what follows for everything there ever was. */
    function checkBeginning(start: Entry): void {
      const isOwed = (entry: Entry) =>
        compareEntries(entry, start) <= 0 && entry.lostAt > world.now && truth.isOn(entry, start.line)
      const first = truth.firstOf(start.log)
      const gone = [
        ...truth.eventsBetween(wanted.names, first, undefined),
        ...truth.invalidationsBetween(wanted.names, first, undefined),
      ].filter(isOwed)
      if (gone.length > 0)
        accuse(
          'unannounced-gap',
          `${who} asked for the beginning and was not told that ${gone.map(nameOf).join()} is gone`,
        )
    }

    function sync(data: string, id: string | undefined): void {
      const gap = JSON.parse(data) as {
        reason: string
        requested: string
        snapshot?: { upTo: string }
        retained?: Retained
      }
      // That something was declared void is the log's own word, and the hub may have it from a read that was begun for another
      // reader, before it last wrote to this one.
      const isLogsWord = gap.requested === requested || gap.reason === 'forced'
      if (!isFounded(gap.reason, gap.requested, connection, isLogsWord ? cameAt : lastWriteAt)) {
        accuse('false-gap', `${who} was told ${gap.reason} at ${gap.requested}`)
      }
      const entry = entryOf(id)
      if (!entry) return
      const given = truth.entry(gap.requested)
      // Where the reader stood may be lost itself, as far as the hub knew: that is told at once.
      if (gap.reason === 'epoch' && given && linesSince(cameAt).every((line) => truth.isOn(given, line))) {
        const skipped = receipts.survivorsBefore(entry)
        if (skipped.length > 0)
          accuse('skipped-survivor', `${who} was told of a loss before ${skipped.map(nameOf).join()}`)
      }
      if (gap.snapshot) checkSnapshot(gap.snapshot.upTo, entry)
      receipts.gap(entry, gap.retained)
    }

    function checkSnapshot(upTo: string, entry: Entry): void {
      const state = entryOf(upTo)
      if (!state) return
      const left = truth
        .eventsBetween(wanted.names, state, undefined)
        .filter(
          (event) => compareEntries(event, entry) <= 0 && event.lostAt > world.now && truth.isOn(event, entry.line),
        )
      if (left.length > 0)
        accuse('stale-snapshot', `${who} has ${left.map(nameOf).join()} neither as state nor to come`)
    }

    function event(data: string, { id, channel: shown }: WireFrame): void {
      const entry = entryOf(id)
      if (!entry) return
      const channel = entry.event?.channel ?? ''
      if (entry.event?.data !== data) accuse('wrong-id', `${who} got ${data} as ${id}`)
      if (shown !== (wanted.showsChannel ? channel : undefined)) accuse('wrong-id', `${who} got ${id} as of ${shown}`)
      if (!isAmong(wanted.names, channel)) accuse('private-leak', `${who} got ${data}, unasked`)
      if (isRevoked()) accuse('private-leak', `${who} got ${data} after its rights were gone`)
      if (entry.kind === 'live' && hadSeen(entry)) accuse('late-live', `${who} got ${nameOf(entry)}, and came after it`)
      receipts.event(entry)
    }

    function take(frame: WireFrame): void {
      onFrame(frame)
      const { type, id, data } = frame
      if (data === undefined) return
      if (type === 'hello') hello(id)
      else if (type === 'sync-required') sync(data, id)
      else if (type === 'checkpoint') {
        const entry = entryOf(id)
        if (entry) receipts.mark(entry)
      } else if (type !== 'close') event(data, frame)
      else if ((JSON.parse(data) as { reason: string }).reason === 'finished') finish()
    }

    function finish(): void {
      receipts.finish([connection.tailLine(), ...linesSince(world.now)])
    }

    return {
      bytes(bytes) {
        const frames = readFrames(decoder.decode(bytes))
        if (!frames) accuse('torn-frame', `${who} was written ${decoder.decode(bytes)}`)
        for (const frame of frames ?? []) take(frame)
        lastWriteAt = world.now
      },
      frames(frames) {
        for (const frame of frames) take(frame)
      },
      nothingMore() {
        hello(requested ?? undefined)
        finish()
      },
    }
  }

  /** Whether a reader may be told of a gap after `requested` now, on the word of a log that the hub knew at `since` or later. */
  function isFounded(reason: string, requested: string, connection: Connection, since: number): boolean {
    const { wanted, linesSince, heardAt } = connection
    // What was found as the beginning may be among what the log has lost, and then it cannot tell what was before.
    const hasLost = () => truth.entries.some((entry) => entry.lostAt <= world.now)
    if (requested === 'earliest' && reason === 'epoch' && hasLost()) return true
    const given = requested === 'earliest' ? truth.firstOf(truth.entries.at(-1)?.log ?? 0) : truth.entry(requested)
    if (!given) return reason !== 'expired' && reason !== 'forced'
    const isBrought = requested === connection.requested
    // An entry that the hub gave the reader itself was judged after it was there.
    return linesSince(isBrought ? since : Math.max(since, given.notedAt)).some((line) => {
      // A loss that is on record alarms nobody whose channels lost nothing.
      if (isFoundedOn(line, truth.standingOn(given, line))) return true
      // Unless it was put there later, and the hub had not heard of that when the reader came.
      const isLate = given.records.some(({ by }) => by.notedAt !== given.lostAt && by.notedAt > heardAt)
      return isBrought && isLate && isFoundedOn(line, given)
    })

    function isFoundedOn(line: number, cursor: Entry): boolean {
      const isVoid = cursor.log !== truth.entries.at(-1)?.log || !truth.isOn(cursor, line)
      const known = (kind: Entry['kind']) => truth.knownAfter(kind, wanted.names, cursor, line)
      switch (reason) {
        case 'expired':
          return isVoid || known('event').some((event) => event.trimmedAt <= world.now)
        case 'forced':
          return known('invalidation').length > 0
        case 'epoch':
          return isVoid || known('loss').length > 0
        case 'ahead':
          return isVoid
        case 'replay-limit':
          return true
        default:
          return false
      }
    }
  }

  return { violations, accuse, follow, watch }
}

export function nameOf(entry: Entry): string {
  return entry.name ?? `${entry.kind} ${entry.position.ms}.${entry.position.seq}`
}
