import type { LogSource } from '@rejoin/hub'
import type { Appended, AppendOptions, Gap, Log, LogEvent, NewEvent, Page, TailBatch, Window } from '@rejoin/hub/log'
import {
  type Branch,
  branchAt,
  comparePositions,
  covers,
  createEpoch,
  createIdFormats,
  createPositionClock,
  type History,
  type IdCodec,
  isAfter,
  isPattern,
  isSame,
  latest,
  openBranch,
  origin,
  type Position,
  type PositionClock,
  RejoinError,
} from '@rejoin/protocol'
import { beginning, type Machine } from './simulated-machine.ts'
import type { Entry, Truth } from './truth.ts'
import type { Cancel, World } from './virtual-world.ts'

/**
 * A log on a computer of its own, shared by several hubs over a network: every question and every answer takes its time,
 * tails lag, and what is asked is decided at one moment in between. It may trim, lose its newest entries and go on on a new
 * branch, or lose everything.
 */
export interface SimulatedLog {
  /** The log as one machine sees it. */
  sourceFor(machine: Machine): LogSource & NodeView
  trim(channel: string, keep: number): void
  /** The newest `count` entries are gone, and it knows: it opens a new branch. */
  rollBack(count: number): boolean
  /** Keeps a copy of what it holds now, instead of an earlier one. */
  copy(): void
  /** Whether there is a copy that lacks something, and can be told apart from what has been trimmed since. */
  canPutBack(): boolean
  /** The copy replaces it. It cannot tell, and opens a branch because it always does. Only while no hub is open. */
  putBack(): void
  /** It does not open for so long. */
  rejectFor(ms: number): void
  /** Everything is gone, and it starts as another log. Only for a time when no hub is open. */
  wipe(): void
  stepClock(ms: number): void
  /**
   * Another server takes over without the newest `count` entries; its clock differs by so much, so that its entries may stand
   * before those that were lost. With `isReported`, it is on record which channels lost something.
   */
  failOver(count: number, clockStepMs: number, isReported: boolean): boolean
  /** The same, while the old server lives and its hubs stay there, until each of them follows. */
  split(count: number, clockStepMs: number): void
  readonly isSplit: boolean
  /** What the old server got since is gone. All hubs must have followed. */
  leaveOld(): void
  /** An id of this log that it has not come to yet. */
  idAhead(): string
}

/** What the simulation has to know of one hub's side of the log. */
export interface NodeView {
  /** The newest entry its tail has handed over. */
  readonly applied: Position
  /** Whether there is something that its tail has yet to bring. */
  readonly behind: boolean
  /** Reads it has asked for. */
  readonly reads: number
  /** The line of the log that its tail is on, and all that it knows or is led to. */
  readonly line: number
  linesSince(time: number): readonly number[]
  /** When the log told it the history that it knows. */
  readonly heardAt: number
  /** Goes over to the server that leads, and puts on record what it has seen and that one lacks. */
  follow(): void
  /** Lets the tail stand still for a while. */
  delayTail(ms: number): void
}

export interface SimulatedLogOptions {
  readonly world: World
  readonly truth: Truth
  readonly codec: IdCodec
  readonly window: { readonly maxEvents: number; readonly maxAgeMs: number }
  /** Entries the tail can look back on; a hub whose tail was away for longer has to jump. */
  readonly feedEvents: number
  /** Events in an answer at most, however many were asked for. */
  readonly pageEvents: number
  /** One way, between hub and log. */
  readonly latencyMs: number
  readonly flaw?: LogFlaw | undefined
  /** Told that events were let go while a hub waited for a read of their channel. */
  onTrimDuringRead(): void
  /** Told that a tail could not continue where it stood: it fell out of the feed, or a branch has opened. */
  onJump(why: 'feed' | 'branch'): void
  /** Told that channels were put on record as having lost something. */
  onLossReported(): void
  /** Told that the end of a channel was among what was lost. */
  onEndLost(): void
  /** Told that it did not open. */
  onRejection(): void
}

/** By position. That is at the end, unless entries were drawn in a step before. */
function insert(entries: Entry[], entry: Entry): void {
  let at = entries.length
  while (at > 0 && isAfter(entries[at - 1]!.position, entry.position)) at -= 1
  entries.splice(at, 0, entry)
}

function attempt<Value>(decide: () => Value): { value: Value } | { error: unknown } {
  try {
    return { value: decide() }
  } catch (error) {
    return { error }
  }
}

/** How a log can be broken. */
export type LogFlaw =
  /** The tail asks for what is new as of now until it has got something once: what came between two asks is skipped. */
  | 'tail-from-now'
  /** Number, entry and announcement are three steps, and another publisher's fall in between. */
  | 'append-in-steps'
  /** It loses its newest entries and goes on as if nothing had happened. */
  | 'silent-rollback'
  /** It opens as the log that was closed last, also when it is an older copy of it. */
  | 'copy-taken-for-the-log'
  /** A reader whose cursor is the newest trimmed entry is told of a gap. */
  | 'oldest-as-edge'
  /** Whether something is gone is looked up first, and what is there is read in a step after it. */
  | 'verdict-before-the-read'
  /** Whether a channel has ended is looked up first, and what is published is appended in a step after it. */
  | 'end-looked-up-first'
  /** A loss that is put on record takes with it what the channel still has. */
  | 'loss-trims'

type PageLimit = Parameters<Log['read']>[3]

/** All that one server has. */
interface Server {
  history: History
  clock: PositionClock
  clockError: number
  channels: Map<string, Channel>
  feed: Entry[]
  feedTrimmedThrough: Position
  once: Map<string, Appended>
  head: Position
  line: number
  tails: Set<() => void>
}

interface Channel {
  events: Entry[]
  previous: Position
  trimmedThrough: Position
  invalidatedThrough: Position
  /** Where a rollback took something, in order. A read must not cross one unannounced. */
  marks: readonly Mark[]
  ended?: LogEvent | undefined
  /** The newest event of each key. */
  retained: Map<string, LogEvent>
}

interface Mark {
  readonly at: Position
  /** The branch with which it was put on record. */
  readonly by: Position
  /** Where the log had gone on behind the loss, when it came to light late. */
  readonly lostBefore?: Position
}

export function createSimulatedLog(options: SimulatedLogOptions): SimulatedLog {
  const { world, truth, codec, window, flaw } = options
  const { chance } = world
  const formats = createIdFormats([{ codec }])
  let clockError = 0
  let number = -1
  let history: History = []
  let clock = newClock()
  let channels = new Map<string, Channel>()
  let feed: Entry[] = []
  let feedTrimmedThrough: Position = origin
  let once = new Map<string, Appended>()
  let head: Position = origin
  let batch = 0
  /** The newest entry of the copy. */
  let copied: Entry | undefined
  let rejectedUntil = 0
  const batchOf = new WeakMap<Entry, number>()
  let tails = new Set<() => void>()
  let line = 0
  /** With which branch it was put on record what another one lost, and how far. Lost itself, it is to be put there again. */
  const reports = new Map<string, { by: Entry; through: Position }[]>()
  const readsUnderWay = new Map<string, number>()
  let leading = current()
  /** The one whose state is at hand. */
  let inside = leading
  let old: Server | undefined
  wipe()

  function current(): Server {
    return { history, clock, clockError, channels, feed, feedTrimmedThrough, once, head, line, tails }
  }

  function enter(server: Server): void {
    ;({ history, clock, clockError, channels, feed, feedTrimmedThrough, once, head, line, tails } = server)
  }

  /** What is done at one server. All others stand still meanwhile. */
  function at<Result>(server: Server, task: () => Result): Result {
    Object.assign(inside, current())
    const before = inside
    enter(server)
    inside = server
    try {
      return task()
    } finally {
      Object.assign(server, current())
      inside = before
      enter(before)
    }
  }

  function countReads(names: readonly string[], by: number): void {
    for (const name of names.flatMap(under)) readsUnderWay.set(name, (readsUnderWay.get(name) ?? 0) + by)
  }

  function now(): number {
    return Math.floor(beginning + world.now + clockError)
  }

  function newClock() {
    return createPositionClock({ kind: codec.clock, maxSeq: codec.maxSeq, now })
  }

  function wipe(): void {
    number += 1
    history = []
    clock = newClock()
    channels = new Map()
    feed = []
    once = new Map()
    tails.clear()
    line = truth.forkLine(-1, origin)
    truth.mainLine = line
    startBranch(undefined)
    feedTrimmedThrough = head
  }

  function startBranch(fork: Position | undefined): void {
    const first = clock.next()
    history = openBranch(history, { epoch: createEpoch(chance.number), first, fork })
    head = first
    noted({ kind: 'branch', position: first })
  }

  function noted(entry: Pick<Entry, 'kind' | 'position' | 'event' | 'name'>): Entry {
    const id = formats.encode(entry.position, history.at(-1)!)
    return truth.note({ ...entry, id, line, log: number, notedAt: world.now })
  }

  function channelOf(name: string): Channel {
    let channel = channels.get(name)
    if (!channel) {
      const none = { previous: origin, trimmedThrough: origin, invalidatedThrough: origin, marks: [] }
      const unused = { events: [], ...none }
      channel = { ...unused, retained: new Map() }
      channels.set(name, channel)
    }
    return channel
  }

  function letGo(name: string, channel: Channel, count: number): void {
    if (count <= 0) return
    for (const entry of channel.events.splice(0, count)) {
      entry.trimmedAt = world.now
      channel.trimmedThrough = latest(channel.trimmedThrough, entry.position)
    }
    if ((readsUnderWay.get(name) ?? 0) > 0) options.onTrimDuringRead()
  }

  function applyWindow(name: string): Channel {
    const channel = channelOf(name)
    const tooOld = now() - window.maxAgeMs
    const fresh = channel.events.findIndex((entry) => entry.event!.at >= tooOld)
    const aged = fresh < 0 ? channel.events.length : fresh
    letGo(name, channel, Math.max(aged, channel.events.length - window.maxEvents))
    return channel
  }

  function write(kind: LogEvent['kind'], entry: NewEvent, position: Position): LogEvent {
    const channel = channelOf(entry.channel)
    const event: LogEvent = { ...entry, kind, position, at: now(), previous: channel.previous }
    const { name } = entry.data === '' ? { name: undefined } : (JSON.parse(entry.data) as { name: string })
    const noticed = noted({ kind, position, event, ...(name === undefined ? {} : { name }) })
    if (kind === 'event' || kind === 'invalidation') channel.previous = position
    if (kind === 'event') insert(channel.events, noticed)
    if (entry.forget) channel.retained.delete(entry.key!)
    else if (entry.key !== undefined) channel.retained.set(entry.key, event)
    insert(feed, noticed)
    batchOf.set(noticed, batch)
    if (feed.length > options.feedEvents)
      feedTrimmedThrough = feed.splice(0, feed.length - options.feedEvents).at(-1)!.position
    head = latest(head, position)
    return event
  }

  function append(entries: readonly NewEvent[], given: AppendOptions, drawn?: readonly Position[]): Appended {
    const { once: key, token } = given
    const name = key && JSON.stringify([key.scope, key.key])
    const earlier = once.get(token) ?? (name === undefined ? undefined : once.get(name))
    if (earlier) return { ...earlier, repeated: true }
    if (flaw !== 'end-looked-up-first') rejectEnded(entries)
    batch += 1
    const stamps = entries.map((entry, index) =>
      write(entry.live ? 'live' : 'event', entry, drawn?.[index] ?? clock.next()),
    )
    for (const channel of new Set(entries.map((entry) => entry.channel))) applyWindow(channel)
    const appended = { stamps, repeated: false }
    if (name !== undefined) once.set(name, appended)
    once.set(token, appended)
    for (const wake of tails) wake()
    return appended
  }

  function rejectOpening(): void {
    if (world.now >= rejectedUntil) return
    options.onRejection()
    throw new RejoinError('The log is damaged. Restore it.', { code: 'log-unavailable' })
  }

  function rejectEnded(entries: readonly NewEvent[]): void {
    const ended = entries.find((entry) => channels.get(entry.channel)?.ended)
    if (ended) throw new RejoinError(`${ended.channel} has ended.`, { code: 'channel-ended' })
  }

  function invalidate(name: string): LogEvent {
    const channel = channelOf(name)
    letGo(name, channel, channel.events.length)
    batch += 1
    const entry = write('invalidation', { channel: name, type: '', data: '' }, clock.next())
    channel.trimmedThrough = entry.position
    channel.invalidatedThrough = entry.position
    channel.retained.clear()
    for (const wake of tails) wake()
    return entry
  }

  function end(name: string): LogEvent {
    const channel = channelOf(name)
    if (channel.ended) return channel.ended
    batch += 1
    channel.ended = write('end', { channel: name, type: '', data: '' }, clock.next())
    for (const wake of tails) wake()
    return channel.ended
  }

  /** The channels that a name stands for. */
  function under(name: string): string[] {
    return isPattern(name) ? [...channels.keys()].filter((channel) => covers(name, channel)) : [name]
  }

  function gapAfter(names: readonly string[], after: Position): Gap | undefined {
    const asked = names.flatMap((name) => under(name).map((channel) => ({ name, ...applyWindow(channel) })))
    const whole = asked.map((channel) => channel.trimmedThrough).reduce(latest, origin)
    // An entry that was given out and then lost. The reader behind it holds what never was.
    const fork = history.findLast(
      (branch) => branch.fork && isAfter(after, branch.fork) && isAfter(branch.first, after),
    )
    if (fork) return { channels: names, reason: 'expired', wholeAfter: latest(whole, fork.first) }
    const edgeOf = ({ events, trimmedThrough }: Channel) =>
      flaw === 'oldest-as-edge' ? (events[0]?.position ?? trimmedThrough) : trimmedThrough
    const lost = asked.filter((channel) => isAfter(edgeOf(channel), after))
    if (lost.length === 0) return undefined
    const forced = lost.some((channel) => isAfter(channel.invalidatedThrough, after))
    const wholeAfter = lost.map(edgeOf).reduce(latest, whole)
    const lostNames = [...new Set(lost.map(({ name }) => name))]
    const isRolledBack = lost.some(({ marks, trimmedThrough }) => marks.some(({ at }) => isSame(at, trimmedThrough)))
    return { channels: lostNames, reason: forced ? 'forced' : isRolledBack ? 'epoch' : 'expired', wholeAfter }
  }

  function read(names: readonly string[], after: Position, through: Position, limit: PageLimit): Page {
    const gap = gapAfter(names, after)
    if (gap) return { events: [], completeThrough: after, gap }
    const mark = markAfter(names, after)
    if (!mark || isAfter(mark.wholeAfter, through)) return readHeld(names, after, through, limit)
    const before = readHeld(names, after, mark.wholeAfter, limit)
    const last = before.events.at(-1)
    return last ? { ...before, completeThrough: last.position } : { ...before, completeThrough: after, gap: mark }
  }

  /** The first of the marks that these channels have after a position. */
  function markAfter(names: readonly string[], after: Position): Gap | undefined {
    const marked = names.flatMap((name) =>
      under(name).flatMap((channel) => channelOf(channel).marks.map((mark) => ({ name, ...mark }))),
    )
    const ahead = marked.filter(({ at }) => isAfter(at, after)).sort((a, b) => comparePositions(a.at, b.at))
    const [first] = ahead
    if (!first) return undefined
    const next = ahead.filter(({ at }) => isSame(at, first.at))
    const channels = [...new Set(next.map(({ name }) => name))]
    const lostBefore = next.map((mark) => mark.lostBefore ?? mark.at).reduce(latest)
    return { channels, reason: 'epoch', wholeAfter: first.at, isMark: true, lostBefore }
  }

  function readHeld(names: readonly string[], after: Position, through: Position, limit: PageLimit): Page {
    const found = names
      .flatMap((name) => under(name).flatMap((channel) => channelOf(channel).events))
      .filter(({ position }) => isAfter(position, after) && !isAfter(position, through))
      .sort((a, b) => comparePositions(a.position, b.position))
    const events = found.slice(0, Math.min(limit.events, options.pageEvents)).map((each) => each.event!)
    return { events, completeThrough: events.length < found.length ? events.at(-1)!.position : through }
  }

  function windowOf(name: string): Window {
    const held = under(name).map(applyWindow)
    const events = held.flatMap((channel) => channel.events.map(({ position }) => position)).sort(comparePositions)
    const trimmedThrough = held.map((channel) => channel.trimmedThrough).reduce(latest, origin)
    const bounds = events.length > 0 ? { oldest: events[0]!, newest: events.at(-1)! } : {}
    const ended = !isPattern(name) && held[0]?.ended ? { ended: held[0].ended.position } : {}
    const isLost = (through: (channel: Channel) => Position) =>
      held.some((channel) => !isSame(through(channel), origin))
    const reasons: [NonNullable<Window['lost']>, (channel: Channel) => Position][] = [
      ['forced', ({ invalidatedThrough }) => invalidatedThrough],
      ['epoch', ({ marks, trimmedThrough }) => marks.find(({ at }) => isSame(at, trimmedThrough))?.at ?? origin],
      ['expired', ({ trimmedThrough }) => trimmedThrough],
    ]
    const lost = reasons.find(([, through]) => isLost(through))?.[0]
    const window = { channel: name, events: events.length, bytes: 0, trimmedThrough, ...bounds, ...ended }
    return lost ? { ...window, lost } : window
  }

  function retainedOf(names: readonly string[]): LogEvent[] {
    const held = names.flatMap((name) => under(name).flatMap((channel) => [...channelOf(channel).retained.values()]))
    return held.sort((a, b) => comparePositions(a.position, b.position))
  }

  function feedAfter(position: Position): Entry[] {
    let start = feed.length
    while (start > 0 && isAfter(feed[start - 1]!.position, position)) start -= 1
    return feed.slice(start)
  }

  /** What a tail that has delivered everything up to `after` on a branch is handed next. */
  function nextBatch(epoch: string, after: Position): (TailBatch & { branch: Branch }) | undefined {
    const index = history.findIndex((branch) => branch.epoch === epoch)
    const isLostBy = ({ fork }: Branch) => fork !== undefined && isAfter(after, fork)
    const lostBy = index === -1 ? history.at(-1) : history.slice(index + 1).find(isLostBy)
    if (lostBy) return { after: lostBy.first, branch: lostBy, events: [] }
    const branch = history[index + 1]
    const from = latest(after, feedTrimmedThrough)
    const end = branch && from === after ? branch.fork! : head
    const events = feedAfter(from).filter(({ position }) => !isAfter(position, end))
    if (events.length > 0 || from !== after) {
      const on = from === after ? (history[index] as Branch) : (branchAt(history, from) as Branch)
      // What follows a jump may lie on several branches; the tail takes one at a time.
      const next = history[history.indexOf(on) + 1]
      const whole = events.filter(({ position }) => !next || !isAfter(position, next.fork!))
      return { after: from, branch: on, events: whole.map((each) => each.event!) }
    }
    return branch && { after: branch.first, branch, events: [] }
  }

  function rollBack(count: number): boolean {
    return loseNewest(count, undefined, false)
  }

  /** @param change - what else is different before the next branch opens */
  function loseNewest(count: number, change: ((fork: Position) => void) | undefined, isReported: boolean): boolean {
    let from = Math.max(1, feed.length - count)
    // A batch was appended in one step and is lost in one. The oldest of the feed may lack its beginning, and stays.
    while (from < feed.length && batchOf.get(feed[from]!) === batchOf.get(feed[from - 1]!)) from += 1
    return loseFrom(from, flaw === 'silent-rollback', change, isReported)
  }

  function canPutBack(): boolean {
    const at = copied ? feed.indexOf(copied) : -1
    if (at === -1 || at === feed.length - 1) return false
    return ![...channels.values()].some(({ trimmedThrough }) => isAfter(trimmedThrough, copied!.position))
  }

  /** Everything from this entry of the feed on is gone. */
  function loseFrom(from: number, inSilence: boolean, change?: (fork: Position) => void, isReported = false): boolean {
    const lost = feed.splice(from)
    if (lost.length === 0) return false
    const standing = truth.entries.filter(
      (each) => each.log === number && each.lostAt === Infinity && truth.isOn(each, line),
    )
    const fork = standing.findLast(({ position }) => isAfter(lost[0]!.position, position))!
    // Starts of branches too, which are in no feed.
    const past = standing.filter(({ position }) => isAfter(position, fork.position))
    for (const each of lost) {
      const channel = channelOf(each.event!.channel)
      channel.events = channel.events.filter((other) => other !== each)
    }
    for (const each of lost.toReversed()) channelOf(each.event!.channel).previous = each.event!.previous
    once = new Map(
      [...once].filter(([, { stamps }]) => !stamps.some(({ position }) => isAfter(position, fork.position))),
    )
    head = fork.position
    // Ids of a branch that nobody knows any more are told of, whatever else is on record.
    const dropped = history.find(({ first }) => isAfter(first, fork.position))
    const named = past.filter(({ position }) => !dropped || isAfter(dropped.first, position))
    for (const each of past) each.lostAt = world.now
    for (const name of new Set(lost.map((each) => each.event!.channel))) forgetLost(name, fork.position)
    if (inSilence) return true
    const wasMain = truth.mainLine === line
    const before = line
    line = truth.forkLine(line, fork.position)
    if (wasMain) truth.mainLine = line
    if (change) change(fork.position)
    else rememberLost(fork.position, before)
    startBranch(fork.position)
    // Behind a branch that nobody knows any more, an earlier loss may lie of which nothing is on record.
    for (const channel of channels.values())
      channel.marks = channel.marks.filter(({ by }) => !isAfter(by, fork.position))
    if (isReported) {
      report(past, history.length - 1, named.at(-1)!.position)
      putOnRecord(named, fork)
    } else raise(past.filter(({ kind }) => kind === 'loss'))
    for (const wake of tails) wake()
    return true
  }

  /** The same server goes on, and goes by its branches, by what it let go and by what it was told, also where that is lost. */
  function rememberLost(fork: Position, before: number): void {
    for (const each of truth.entries) {
      const isOfUse = each.kind !== 'event' || each.trimmedAt < Infinity
      if (each.log === number && isOfUse && isAfter(each.position, fork) && truth.isKnownOn(each, before))
        truth.remember(each, line)
    }
  }

  function newestBranch(): Entry {
    return truth.entries.findLast((each) => each.kind === 'branch' && each.log === number && each.line === line)!
  }

  /** Readers at these entries go on from the fork from now on. */
  function putOnRecord(lost: readonly Entry[], fork: Entry): void {
    const by = newestBranch()
    for (const each of lost) each.records.push({ fork, by })
  }

  /**
   * Puts on record which channels lost something, and how far it was seen, at the newest branch. When another branch lost it, that
   * branch is marked as well: its events stay, and who comes to them from before has to be told first.
   */
  function report(lost: readonly Entry[], index: number, through: Position): void {
    history = history.map((branch, at) =>
      at === index ? { ...branch, reported: latest(through, branch.reported ?? origin) } : branch,
    )
    const { epoch } = history[index] as Branch
    const by = newestBranch()
    reports.set(epoch, [...(reports.get(epoch) ?? []), { by, through }])
    raise(lost, history[index]?.first)
  }

  /**
   * The channels of these entries lost something before the newest branch. A hub that has put a loss on record does so again when
   * the record is lost itself: it has led its readers back to an entry from which only the record tells them.
   */
  function raise(lost: readonly Entry[], since?: Position): void {
    const { first } = history.at(-1)!
    for (const name of new Set(lost.flatMap(({ kind, event }) => (event && kind !== 'live' ? event.channel : [])))) {
      const channel = channelOf(name)
      if (flaw === 'loss-trims') {
        channel.events = []
        channel.trimmedThrough = first
      }
      channel.previous = first
      const isLate = since !== undefined && isAfter(first, since)
      const late = isLate ? [{ at: since, by: first }] : []
      channel.marks = [...channel.marks, ...late, { at: first, by: first, ...(isLate ? { lostBefore: since } : {}) }]
      options.onLossReported()
      const loss = noted({ kind: 'loss', position: first, event: { channel: name } as LogEvent })
      if (isLate) truth.lateMarks.push({ channel: name, position: since, loss })
    }
  }

  function failOver(count: number, clockStepMs: number, isReported: boolean): boolean {
    return loseNewest(count, (fork) => takeOver(fork, clockStepMs), isReported)
  }

  /** Another clock, which knows of nothing past the fork, and the branches of then. */
  function takeOver(fork: Position, clockStepMs: number): void {
    clockError += clockStepMs
    clock = createPositionClock({ kind: codec.clock, maxSeq: codec.maxSeq, now, last: fork })
    history = history
      .filter(({ first }) => !isAfter(first, fork))
      .map(({ reported, ...branch }) => {
        const kept = reports.get(branch.epoch)?.filter(({ by }) => truth.isKnownOn(by, line)) ?? []
        return reported && kept.length > 0
          ? { ...branch, reported: kept.map(({ through }) => through).reduce(latest) }
          : branch
      })
    forgetInvalidations(fork)
  }

  /** The old server as it is stays with its hubs; another one, which may lack some of its entries, leads from now on. */
  function split(count: number, clockStepMs: number): void {
    Object.assign(leading, current())
    old = leading
    const copies = [...channels].map(([name, channel]): [string, Channel] => [
      name,
      { ...channel, events: [...channel.events], retained: new Map(channel.retained) },
    ])
    leading = {
      ...old,
      channels: new Map(copies),
      feed: [...feed],
      once: new Map(once),
      tails: new Set(),
      line: truth.forkLine(line, head),
    }
    inside = leading
    enter(leading)
    truth.mainLine = line
    cutBack(count)
    takeOver(head, clockStepMs)
    startBranch(head)
  }

  /** The newest entries did not get here. They are not lost as long as the old server has them. */
  function cutBack(count: number): void {
    let from = Math.max(1, feed.length - count)
    while (from < feed.length && batchOf.get(feed[from]!) === batchOf.get(feed[from - 1]!)) from += 1
    const missing = feed.splice(from)
    const first = missing[0]
    if (!first) return
    const before = truth.entries.filter(
      (each) => each.log === number && each.lostAt === Infinity && truth.isOn(each, old!.line),
    )
    head = before.findLast(({ position }) => isAfter(first.position, position))!.position
    line = truth.forkLine(old!.line, head)
    truth.mainLine = line
    for (const each of missing.toReversed()) {
      const channel = channelOf(each.event!.channel)
      channel.events = channel.events.filter((other) => other !== each)
      channel.previous = each.event!.previous
    }
    once = new Map([...once].filter(([, { stamps }]) => !stamps.some(({ position }) => isAfter(position, head))))
    const fork = head
    for (const name of new Set(missing.map((each) => each.event!.channel))) {
      const channel = channelOf(name)
      if (channel.ended && isAfter(channel.ended.position, fork)) channel.ended = undefined
      const at = before.findLast(({ position }) => !isAfter(position, fork))!
      channel.retained = new Map([...truth.valuesAt([name], at).values()].map(({ event }) => [event!.key!, event!]))
    }
  }

  function leaveOld(): void {
    if (!old) return
    const { line: left } = old
    old = undefined
    for (const each of truth.entries) {
      if (each.log === number && truth.isOn(each, left) && !truth.isOn(each, line))
        each.lostAt = Math.min(each.lostAt, world.now)
    }
  }

  /**
   * What a hub saw and the leading server lacks: put on record there, by one more branch. The old server may have lost some of
   * it itself, so the line that counts is the hub's.
   */
  function reportFrom(seenLine: number, epoch: string, applied: Position): void {
    const index = history.findIndex((branch) => branch.epoch === epoch)
    const by = history.findIndex(({ fork }, at) => at > index && fork !== undefined && isAfter(applied, fork))
    const missing = truth.entries.filter(
      (each) =>
        each.log === number &&
        truth.isOn(each, seenLine) &&
        !truth.isOn(each, line) &&
        !isAfter(each.position, applied),
    )
    const records = missing.filter(({ kind }) => kind === 'loss')
    if (records.length > 0) {
      startBranch(head)
      raise(records)
      for (const wake of tails) wake()
    }
    if (index === -1 || by === -1) return
    const { first, fork, reported } = history[by] as Branch
    if (reported && !isAfter(applied, reported)) return
    const seen = missing.filter(({ kind }) => kind !== 'loss')
    // Nothing may stand at the fork itself: what stood there was lost with an earlier branch. Readers go on from before it.
    const forkEntry = truth.entries
      .filter((each) => each.log === number && each.kind !== 'loss' && truth.isOn(each, line))
      .findLast(({ position }) => !isAfter(position, fork!))
    const isMarked = (name: string) => channels.get(name)?.marks.some(({ at }) => isSame(first, at)) ?? false
    const news = seen.filter(({ event }) => event && !isMarked(event.channel))
    if (news.some(({ kind }) => kind !== 'live')) startBranch(head)
    report(news, by, applied)
    putOnRecord(seen, forkEntry!)
    for (const wake of tails) wake()
  }

  /**
   * What an invalidation that was lost let go stays gone, but nobody declared it void. A record of a loss that was lost itself
   * has not been, and the next event does not follow it.
   */
  function forgetInvalidations(fork: Position): void {
    for (const [name, channel] of channels) {
      channel.marks = channel.marks.filter(({ by }) => !isAfter(by, fork))
      if (!isAfter(channel.trimmedThrough, fork) && !isAfter(channel.previous, fork)) continue
      const ofChannel = truth.entries.filter(({ event, log }) => event?.channel === name && log === number)
      const isHere = (each: Entry) => !isAfter(each.position, fork) && truth.isKnownOn(each, line)
      const linked = ofChannel.filter((each) => each.kind !== 'live' && each.kind !== 'end' && isHere(each))
      channel.previous = linked.map(({ position }) => position).reduce(latest, origin)
      const gone = ofChannel.filter((each) => each.kind === 'event' && each.trimmedAt < Infinity && isHere(each))
      const voided = ofChannel.filter((each) => each.kind === 'invalidation' && isHere(each))
      channel.invalidatedThrough = voided.map(({ position }) => position).reduce(latest, origin)
      channel.trimmedThrough = gone.map(({ position }) => position).reduce(latest, channel.invalidatedThrough)
    }
  }

  /** An end that was lost has not been, and the value that a lost event replaced is the newest again. */
  function forgetLost(name: string, fork: Position): void {
    const channel = channelOf(name)
    if (channel.ended && isAfter(channel.ended.position, fork)) {
      channel.ended = undefined
      options.onEndLost()
    }
    const standing = truth.newestOn(line)
    channel.retained = new Map([...truth.valuesAt([name], standing).values()].map(({ event }) => [event!.key!, event!]))
  }

  function sourceFor(machine: Machine): LogSource & NodeView {
    let server = leading
    let known = history
    /** The line that the history of this hub tells of. */
    let knownLine = line
    let heardAt = world.now
    /** Those that it told of before. */
    const knownLines: { line: number; until: number }[] = []
    let applied = origin
    let epoch = history.at(-1)!.epoch
    let appliedLine = line
    let reads = 0
    let tailStandsUntil = 0
    let wakeTail: (() => void) | undefined
    const pause = () => chance.between(0, options.latencyMs)

    /** Asks on the machine, decides at the log, answers on the machine. */
    function ask<Answer>(decide: () => Answer, onAnswer = () => {}): Promise<Answer> {
      return new Promise((resolve, reject) => {
        world.after(pause(), () => {
          const asked = server
          const [answer, heard, on] = at(asked, () => [attempt(decide), history, line] as const)
          const decidedAt = world.now
          world.after(pause(), () => {
            onAnswer()
            // The connection has gone. Like a client, it asks again where it is led to; what was done stays done.
            machine.run(() => {
              if (asked !== server || on < knownLine) {
                ask(decide).then(resolve, reject)
                return
              }
              learn(heard, on, decidedAt)
              if ('error' in answer) reject(answer.error)
              else resolve(answer.value)
            })
          })
        })
      })
    }

    function learn(heard: History, on: number, decidedAt: number): void {
      // Answers of one server may come out of turn. A server that lost something, or another one, is on a later line.
      if (on === knownLine && heard.length < known.length) return
      if (on < knownLine) return
      if (on !== knownLine) knownLines.push({ line: knownLine, until: world.now })
      known = heard
      knownLine = on
      heardAt = decidedAt
    }

    function tail(after: Position, onBatch: (batch: TailBatch) => void) {
      let open = true
      let polling: Cancel | undefined
      applied = after
      epoch = (branchAt(history, after) as Branch).epoch
      appliedLine = line
      let fresh = true

      function wake(): void {
        if (!open || polling) return
        const wait = Math.max(pause(), tailStandsUntil - world.now)
        polling = world.after(wait, poll)
      }

      function poll(): void {
        polling = undefined
        if (!open || !machine.alive) return
        const asked = server
        const batch = at(asked, () => nextBatch(epoch, applied))
        if (!batch) return
        if (flaw === 'tail-from-now' && fresh && chance.happens(0.5)) {
          // Nothing came while it asked; what came since is before the "now" of the next ask.
          fresh = false
          applied = batch.events.at(-1)?.position ?? batch.after
          return
        }
        fresh = flaw === 'tail-from-now' && chance.happens(0.2)
        if (!isSame(batch.after, applied))
          options.onJump(isAfter(asked.feedTrimmedThrough, applied) ? 'feed' : 'branch')
        const [heard, on] = at(asked, () => [history, line] as const)
        const decidedAt = world.now
        // Nothing else is asked for until this has arrived, so batches arrive in order.
        polling = world.after(Math.max(pause(), tailStandsUntil - world.now), () =>
          machine.run(() => {
            polling = undefined
            if (!open) return
            if (asked !== server) {
              wake()
              return
            }
            learn(heard, on, decidedAt)
            onBatch(flaw === 'tail-from-now' ? { ...batch, after: delivered } : batch)
            applied = batch.events.at(-1)?.position ?? batch.after
            epoch = batch.branch.epoch
            appliedLine = on
            delivered = applied
            wake()
          }),
        )
      }

      let delivered = after
      tails.add(wake)
      wakeTail = wake
      wake()
      return {
        close() {
          open = false
          wakeTail = undefined
          server.tails.delete(wake)
        },
      }
    }

    return {
      name: 'simulated',
      get applied() {
        return applied
      },
      get behind() {
        return server !== leading || at(server, () => nextBatch(epoch, applied)) !== undefined
      },
      get line() {
        return appliedLine
      },
      linesSince(time) {
        const before = knownLines.filter(({ until }) => until >= time)
        return [...before.map((each) => each.line), knownLine, at(server, () => line)]
      },
      get heardAt() {
        return heardAt
      },
      follow() {
        if (server === leading) return
        const left = server
        server = leading
        if (!wakeTail) return
        left.tails.delete(wakeTail)
        server.tails.add(wakeTail)
        if (machine.alive) at(server, () => reportFrom(appliedLine, epoch, applied))
        wakeTail()
      },
      get reads() {
        return reads
      },
      delayTail(ms) {
        tailStandsUntil = world.now + ms
      },
      async open() {
        await ask(rejectOpening)
        const log: Log = {
          name: 'simulated',
          durability: 'replicated',
          window: { maxBytes: Number.POSITIVE_INFINITY, ...window },
          formats,
          get history() {
            return known
          },
          append(entries, given) {
            if (flaw === 'end-looked-up-first') {
              return ask(() => rejectEnded(entries)).then(() => ask(() => append(entries, given)))
            }
            if (flaw !== 'append-in-steps') return ask(() => append(entries, given))
            return ask(() => ({ drawn: entries.map(() => clock.next()), on: history })).then(({ drawn, on }) =>
              ask(() => append(entries, given, on === history ? drawn : undefined)),
            )
          },
          invalidate: (channel) => ask(() => invalidate(channel)),
          end: (channel) => ask(() => end(channel)),
          retained: (names) => ask(() => retainedOf(names)),
          channels: ({ prefix }) => ask(() => under(`${prefix}*`).map(windowOf)),
          probe: () => ask(() => undefined),
          read(names, after, through, limit) {
            reads += 1
            countReads(names, 1)
            const done = () => countReads(names, -1)
            if (flaw !== 'verdict-before-the-read') return ask(() => read(names, after, through, limit), done)
            return ask(() => read(names, after, through, limit)).then((page) =>
              page.gap ? page : ask(() => readHeld(names, after, through, limit), done),
            )
          },
          windows: (names) => ask(() => names.map(windowOf)),
          tail: (after, onBatch) => ask(() => tail(after, onBatch)),
          head: () => ask(() => head),
          close: async () => undefined,
        }
        return log
      },
    }
  }

  return {
    sourceFor,
    trim(name, keep) {
      letGo(name, channelOf(name), channelOf(name).events.length - keep)
    },
    rollBack,
    copy() {
      copied = feed.at(-1)
    },
    canPutBack,
    putBack: () => void loseFrom(feed.indexOf(copied!) + 1, flaw === 'copy-taken-for-the-log'),
    rejectFor(ms) {
      rejectedUntil = world.now + ms
    },
    failOver,
    split,
    get isSplit() {
      return old !== undefined
    },
    leaveOld,
    wipe,
    stepClock(ms) {
      clockError += ms
    },
    idAhead() {
      const ahead = codec.clock === 'counter' ? { ms: 0, seq: head.seq + 1e6 } : { ms: head.ms + 1e9, seq: 0 }
      return formats.encode(ahead, history.at(-1)!)
    },
  }
}
