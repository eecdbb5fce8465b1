import type {
  Appended,
  AppendOptions,
  Gap,
  Log,
  LogEvent,
  LogSource,
  NewEvent,
  Page,
  TailBatch,
  Window,
} from '@rejoin/hub'
import {
  comparePositions,
  covers,
  createClock,
  createEpoch,
  createIdFormats,
  type History,
  type IdCodec,
  isAfter,
  isPattern,
  isSame,
  latest,
  openBranch,
  origin,
  type Position,
  RejoinError,
} from '@rejoin/protocol'
import { beginning, type Machine } from './simulated-machine.ts'
import type { Place, Truth } from './truth.ts'
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
  /** Keeps a copy of what it holds now, in the place of an earlier one. */
  copy(): void
  /** Whether there is a copy that lacks something, and can be told apart from what has been trimmed since. */
  canPutBack(): boolean
  /** The copy takes its place. It cannot tell, and opens a branch because it always does. Only while no hub is open. */
  putBack(): void
  /** It refuses to open for so long. */
  refuseFor(ms: number): void
  /** Everything is gone, and it starts as another log. Only for a time when no hub is open. */
  wipe(): void
  stepClock(ms: number): void
  /** An id of this log that it has not come to yet. */
  idAhead(): string
}

/** What the simulation has to know of one hub's side of the log. */
export interface NodeView {
  /** The newest place its tail has handed over. */
  readonly applied: Position
  /** Whether there is something that its tail has yet to bring. */
  readonly behind: boolean
  /** Reads it has asked for. */
  readonly reads: number
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
  /** Told that the end of a channel was among what was lost. */
  onEndLost(): void
  /** Told that it refused to open. */
  onRefusal(): void
}

/** By position. That is at the end, unless places were drawn in a step before. */
function insert(places: Place[], place: Place): void {
  let at = places.length
  while (at > 0 && isAfter(places[at - 1]!.position, place.position)) at -= 1
  places.splice(at, 0, place)
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
  /** A reader whose cursor is the newest trimmed place is told of a gap. */
  | 'oldest-as-edge'
  /** Whether something is gone is looked up first, and what is there is read in a step after it. */
  | 'verdict-before-the-read'
  /** Whether a channel has ended is looked up first, and what is published is appended in a step after it. */
  | 'end-looked-up-first'

type PageLimit = Parameters<Log['read']>[3]

interface Channel {
  events: Place[]
  previous: Position
  trimmedThrough: Position
  invalidatedThrough: Position
  ended?: LogEvent | undefined
  /** The newest event of each key. */
  retained: Map<string, LogEvent>
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
  let feed: Place[] = []
  let feedTrimmedThrough: Position = origin
  let once = new Map<string, Appended>()
  let head: Position = origin
  let batch = 0
  /** The newest entry of the copy. */
  let copied: Place | undefined
  let refusedUntil = 0
  const batchOf = new WeakMap<Place, number>()
  const tails = new Set<() => void>()
  const readsUnderWay = new Map<string, number>()
  wipe()

  function countReads(names: readonly string[], by: number): void {
    for (const name of names.flatMap(under)) readsUnderWay.set(name, (readsUnderWay.get(name) ?? 0) + by)
  }

  function now(): number {
    return Math.floor(beginning + world.now + clockError)
  }

  function newClock() {
    return createClock({ kind: codec.clock, maxSeq: codec.maxSeq, now })
  }

  function wipe(): void {
    number += 1
    history = []
    clock = newClock()
    channels = new Map()
    feed = []
    once = new Map()
    tails.clear()
    startBranch(undefined)
    feedTrimmedThrough = head
  }

  function startBranch(fork: Position | undefined): void {
    const first = clock.next()
    history = openBranch(history, { epoch: createEpoch(chance.number), first, fork })
    head = first
    noted({ kind: 'branch', position: first })
  }

  function noted(place: Pick<Place, 'kind' | 'position' | 'event' | 'name'>): Place {
    const id = formats.encode(place.position, history.at(-1)!)
    return truth.note({ ...place, id, log: number, notedAt: world.now })
  }

  function channelOf(name: string): Channel {
    let channel = channels.get(name)
    if (!channel) {
      const unused = { events: [], previous: origin, trimmedThrough: origin, invalidatedThrough: origin }
      channel = { ...unused, retained: new Map() }
      channels.set(name, channel)
    }
    return channel
  }

  function letGo(name: string, channel: Channel, count: number): void {
    if (count <= 0) return
    for (const place of channel.events.splice(0, count)) {
      place.trimmedAt = world.now
      channel.trimmedThrough = latest(channel.trimmedThrough, place.position)
    }
    if ((readsUnderWay.get(name) ?? 0) > 0) options.onTrimDuringRead()
  }

  function applyWindow(name: string): Channel {
    const channel = channelOf(name)
    const tooOld = now() - window.maxAgeMs
    const fresh = channel.events.findIndex((place) => place.event!.at >= tooOld)
    const aged = fresh < 0 ? channel.events.length : fresh
    letGo(name, channel, Math.max(aged, channel.events.length - window.maxEvents))
    return channel
  }

  function place(kind: LogEvent['kind'], entry: NewEvent, position: Position): LogEvent {
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

  function append(entries: readonly NewEvent[], { once: key }: AppendOptions, drawn?: readonly Position[]): Appended {
    const name = key && JSON.stringify([key.scope, key.key])
    const earlier = name === undefined ? undefined : once.get(name)
    if (earlier) return { ...earlier, repeated: true }
    if (flaw !== 'end-looked-up-first') refuseEnded(entries)
    batch += 1
    const places = entries.map((entry, index) =>
      place(entry.live ? 'live' : 'event', entry, drawn?.[index] ?? clock.next()),
    )
    for (const channel of new Set(entries.map((entry) => entry.channel))) applyWindow(channel)
    const appended = { places, repeated: false }
    if (name !== undefined) once.set(name, appended)
    for (const wake of tails) wake()
    return appended
  }

  function refuseToOpen(): void {
    if (world.now >= refusedUntil) return
    options.onRefusal()
    throw new RejoinError('The log is damaged. Restore it.', { code: 'log-unavailable' })
  }

  function refuseEnded(entries: readonly NewEvent[]): void {
    const ended = entries.find((entry) => channels.get(entry.channel)?.ended)
    if (ended) throw new RejoinError(`${ended.channel} has ended.`, { code: 'channel-ended' })
  }

  function invalidate(name: string): LogEvent {
    const channel = channelOf(name)
    letGo(name, channel, channel.events.length)
    batch += 1
    const entry = place('invalidation', { channel: name, type: '', data: '' }, clock.next())
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
    channel.ended = place('end', { channel: name, type: '', data: '' }, clock.next())
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
    // A place that was given out and then lost. The reader behind it holds what never was.
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
    return { channels: lostNames, reason: forced ? 'forced' : 'expired', wholeAfter }
  }

  function read(names: readonly string[], after: Position, through: Position, limit: PageLimit): Page {
    const gap = gapAfter(names, after)
    return gap ? { events: [], completeThrough: after, gap } : readHeld(names, after, through, limit)
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
    return { channel: name, events: events.length, bytes: 0, trimmedThrough, ...bounds, ...ended }
  }

  function retainedOf(names: readonly string[]): LogEvent[] {
    const held = names.flatMap((name) => under(name).flatMap((channel) => [...channelOf(channel).retained.values()]))
    return held.sort((a, b) => comparePositions(a.position, b.position))
  }

  function feedAfter(position: Position): Place[] {
    let start = feed.length
    while (start > 0 && isAfter(feed[start - 1]!.position, position)) start -= 1
    return feed.slice(start)
  }

  /** What a tail that has delivered everything up to `after` is handed next. */
  function nextBatch(after: Position): TailBatch | undefined {
    const branch = history.find(({ first }) => isAfter(first, after))
    const from = latest(after, feedTrimmedThrough)
    const end = branch && from === after ? branch.fork! : head
    const events = feedAfter(from).filter(({ position }) => !isAfter(position, end))
    if (events.length > 0 || from !== after) return { after: from, events: events.map((each) => each.event!) }
    return branch && { after: branch.first, events: [] }
  }

  function rollBack(count: number): boolean {
    let from = Math.max(1, feed.length - count)
    // A batch was appended in one step and is lost in one. The oldest of the feed may lack its beginning, and stays.
    while (from < feed.length && batchOf.get(feed[from]!) === batchOf.get(feed[from - 1]!)) from += 1
    return loseFrom(from, flaw === 'silent-rollback')
  }

  function canPutBack(): boolean {
    const at = copied ? feed.indexOf(copied) : -1
    if (at === -1 || at === feed.length - 1) return false
    return ![...channels.values()].some(({ trimmedThrough }) => isAfter(trimmedThrough, copied!.position))
  }

  /** Everything from this entry of the feed on is gone. */
  function loseFrom(from: number, inSilence: boolean): boolean {
    const lost = feed.splice(from)
    if (lost.length === 0) return false
    const standing = truth.places.filter(({ log, lostAt }) => log === number && lostAt === Infinity)
    const fork = standing.findLast(({ position }) => isAfter(lost[0]!.position, position))!.position
    // Starts of branches too, which are in no feed.
    const past = standing.filter(({ position }) => isAfter(position, fork))
    for (const each of past) each.lostAt = world.now
    for (const each of lost) {
      const channel = channelOf(each.event!.channel)
      channel.events = channel.events.filter((other) => other !== each)
    }
    for (const each of lost.toReversed()) channelOf(each.event!.channel).previous = each.event!.previous
    for (const name of new Set(lost.map((each) => each.event!.channel))) forgetLost(name, fork)
    once = new Map([...once].filter(([, { places }]) => !places.some(({ position }) => isAfter(position, fork))))
    head = fork
    if (inSilence) return true
    startBranch(fork)
    for (const wake of tails) wake()
    return true
  }

  /** An end that was lost has not been, and the value that a lost event took the place of is the newest again. */
  function forgetLost(name: string, fork: Position): void {
    const channel = channelOf(name)
    if (channel.ended && isAfter(channel.ended.position, fork)) {
      channel.ended = undefined
      options.onEndLost()
    }
    const standing = truth.places.at(-1)!
    channel.retained = new Map([...truth.valuesAt([name], standing).values()].map(({ event }) => [event!.key!, event!]))
  }

  function sourceFor(machine: Machine): LogSource & NodeView {
    let known = history
    let applied = origin
    let reads = 0
    let tailStandsUntil = 0
    const pause = () => chance.between(0, options.latencyMs)

    /** Asks on the machine, decides at the log, answers on the machine. */
    function ask<Answer>(decide: () => Answer, onAnswer = () => {}): Promise<Answer> {
      return new Promise((resolve, reject) => {
        world.after(pause(), () => {
          const answer = attempt(decide)
          const heard = history
          world.after(pause(), () => {
            onAnswer()
            machine.run(() => {
              learn(heard)
              if ('error' in answer) reject(answer.error)
              else resolve(answer.value)
            })
          })
        })
      })
    }

    function learn(heard: History): void {
      if (heard.length > known.length) known = heard
    }

    function tail(after: Position, onBatch: (batch: TailBatch) => void) {
      let open = true
      let polling: Cancel | undefined
      applied = after
      let fresh = true

      function wake(): void {
        if (!open || polling) return
        const wait = Math.max(pause(), tailStandsUntil - world.now)
        polling = world.after(wait, poll)
      }

      function poll(): void {
        polling = undefined
        if (!open || !machine.alive) return
        const batch = nextBatch(applied)
        if (!batch) return
        if (flaw === 'tail-from-now' && fresh && chance.happens(0.5)) {
          // Nothing came while it asked; what came since is before the "now" of the next ask.
          fresh = false
          applied = batch.events.at(-1)?.position ?? batch.after
          return
        }
        fresh = flaw === 'tail-from-now' && chance.happens(0.2)
        if (!isSame(batch.after, applied)) options.onJump(isAfter(feedTrimmedThrough, applied) ? 'feed' : 'branch')
        const heard = history
        // Nothing else is asked for until this has arrived, so batches arrive in order.
        polling = world.after(Math.max(pause(), tailStandsUntil - world.now), () =>
          machine.run(() => {
            polling = undefined
            if (!open) return
            learn(heard)
            onBatch(flaw === 'tail-from-now' ? { ...batch, after: delivered } : batch)
            applied = batch.events.at(-1)?.position ?? batch.after
            delivered = applied
            wake()
          }),
        )
      }

      let delivered = after
      tails.add(wake)
      wake()
      return {
        close() {
          open = false
          tails.delete(wake)
        },
      }
    }

    return {
      name: 'simulated',
      get applied() {
        return applied
      },
      get behind() {
        return nextBatch(applied) !== undefined
      },
      get reads() {
        return reads
      },
      delayTail(ms) {
        tailStandsUntil = world.now + ms
      },
      async open() {
        await ask(refuseToOpen)
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
              return ask(() => refuseEnded(entries)).then(() => ask(() => append(entries, given)))
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
    refuseFor(ms) {
      refusedUntil = world.now + ms
    },
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
