import type { EventStream, StreamEvent, SyncRequired } from '../event-stream.ts'
import type { Off } from '../handler-set.ts'
import type { ConnectOptions } from '../options.ts'
import { connect } from '../stream.ts'
import type { watchUser } from './asked-user.ts'
import { subjectIn, trustIn } from './identity.ts'
import { noteClosed, openSoon } from './opening.ts'
import type { StoreOptions } from './stream-store.ts'

/**
 * The stream that the components of one URL and one user share.
 *
 * A component that returns, as from React's `<Activity>`, goes on at its cursor. When the stream has read on meanwhile,
 * a second stream catches up for all such components together, from the oldest of their cursors. As soon as both streams
 * are at the same event, the components move over and the second stream closes. So there are never more than two
 * connections, however many components return.
 *
 * @param given - a stream that the caller opens and closes
 * @param restart - closes this group and makes another, for the same components at their cursors
 * @param heir - whether the components have read with a connection of others, who may be another user and have left
 */
export function createStreamGroup(
  source: string | EventStream,
  given: EventStream | undefined,
  restart: () => void,
  heir: Member | boolean | undefined,
): StreamGroup {
  const shared: ConnectOptions = {}
  const members = new Set<Member>()
  /** Members that the second stream brings up to date. */
  const behind = new Set<Member>()
  let main: Reading | undefined
  let side: Reading | undefined
  let sideOptions: ConnectOptions = {}
  let openedAt: number | undefined
  let cancelOpening: Off | undefined
  let isCatchUpDue = false
  /** The highest rank of all members so far. */
  let highest = 0
  /** The members that were there when the last good connection was made: others may be the next user's. */
  let vouchers = new Set<Member>()
  /** The members that were there at the latest attempt. */
  let asking = vouchers

  const it: StreamGroup = {
    stream: () => main?.stream,

    isFor(joining) {
      const needed = Math.max(highest, ...joining.map(rankOf))
      const isKnown = given || (trustIn(shared) > 1 && !joining.some(({ options }) => trustIn(options) === 1))
      // Nobody below that rank can tell that the user is still the one whose credentials opened the stream.
      return isKnown ? members.size + joining.length > 0 : [...vouchers].some((member) => rankOf(member) >= needed)
    },

    add(member) {
      members.add(member)
      member.group = it
      highest = Math.max(highest, rankOf(member))
      renew(member)
      if (main) position(member)
      else vouchers.add(member)
    },

    retain(isWanted) {
      for (const member of members) if (!isWanted(member)) drop(member)
      if (!behind.size) side = end(side)
      else if (!isRead(main) && !shared.persist) it.close()
    },

    start() {
      if (main || cancelOpening) return
      if (given) open()
      else cancelOpening = openSoon(open)
    },

    renew,

    close() {
      for (const member of members) drop(member, rankOf(member) < highest)
      cancelOpening?.()
      cancelOpening = undefined
      if (!given) noteClosed(openedAt)
      main = end(main)
      side = end(side)
    },
  }
  return it

  /** Reads on another stream, as for components that have just come. */
  function startAnew(): void {
    // Nobody counts as the same user.
    highest = Infinity
    restart()
  }

  /** @param isOther - false for a member that may be the same user's, and goes on at its cursor */
  function drop(member: Member, isOther = true): void {
    const { reading } = member
    if (reading && member.awaited === undefined) member.cursor = reading.stream.cursor
    // The cursor of a member that was behind is about as old as it was.
    if (reading === main) member.leftAt = ++departures
    for (const set of [members, vouchers, asking, behind]) set.delete(member)
    member.group = member.reading = undefined
    member.end(isOther)
  }

  function open(): void {
    cancelOpening = undefined
    openedAt ??= Date.now()
    const returning = [...members].filter(({ reads, cursor }) => reads && cursor !== null)
    const [newest] = returning.sort((a, b) => b.leftAt - a.leftAt)
    heir &&= newest
    // A store may hold a later cursor, which `connect` prefers. The members find their position when it is known.
    if (newest && !shared.persist) shared.from = newest.cursor
    // Another user of the tab would otherwise move the cursor in its storage.
    if (shared.persist === 'session') shared.identity ??= subjectIn(shared)
    try {
      main = read(given ?? (connect(source as string, shared) as EventStream))
    } catch (error) {
      for (const member of members) member.fail(error)
      return
    }
    // The newest first: the stream starts at its cursor, and the others compare theirs with it.
    for (const member of new Set([...returning, ...members])) position(member)
    listen(main)
  }

  /** Lets a member read, where it left off. */
  function position(member: Member): void {
    const { stream } = main!
    const { cursor, reads } = member
    if (!reads || given || cursor === null) {
      attach(member, main!, cursor !== stream.cursor)
      return
    }
    if (stream.cursor === null && shared.persist) return
    const missed = cursor === stream.cursor ? [] : eventsAfter(cursor, stream)
    if (missed) {
      attach(member, main!)
      for (const event of missed) void member.receive(event)
    } else if (isRead(main) || shared.persist) {
      behind.add(member)
      if (isCatchUpDue) return
      isCatchUpDue = true
      queueMicrotask(catchUp)
    } else restart()
  }

  function attach(member: Member, reading: Reading, isFresh = false): void {
    member.reading = reading
    member.begin(reading.stream, isFresh)
    listen(reading)
  }

  function catchUp(): void {
    isCatchUpDue = false
    for (const member of behind) if (member.reading && member.awaited === undefined) member.cursor = side!.stream.cursor
    side = end(side)
    const [oldest] = [...behind].sort((a, b) => a.leftAt - b.leftAt)
    if (!oldest || !main) return
    const { persist, shareAcrossTabs, ...rest } = shared
    sideOptions = { ...rest, from: oldest.cursor }
    side = read(connect(source as string, sideOptions) as EventStream)
    for (const member of behind) {
      // Until its last event comes by, the member has seen everything.
      member.awaited = member.cursor === oldest.cursor ? undefined : member.cursor!
      attach(member, side)
    }
  }

  function read(stream: EventStream): Reading {
    const reading: Reading = { stream, offs: [] }
    let last: string | undefined
    reading.offs.push(
      stream.onState(({ state, closeReason }) => {
        if (reading === main && state !== last) {
          // An attempt reads the credentials of all that are there.
          if (state === 'connecting') asking = new Set(members)
          if (state === 'connected') {
            vouchers = asking
            heir = undefined
          }
          // It is closed as `unauthorized`, by a status such as 403, or by the page of a login.
          if (heir && /4|aut|type/.test(closeReason!)) return startAnew()
        }
        last = state
        positionWaiting()
        meet(reading, stream.cursor)
      }),
    )
    return reading
  }

  /** Listens only to what its members want: a stream without a handler for gaps warns of them. */
  function listen(reading: Reading): void {
    const { stream, offs } = reading
    const own = [...members].filter((member) => member.reads && isOn(member, reading))
    if (own.length) offs[1] ??= stream.on('*', (event) => hear(reading, event))
    if (own.some(({ options }) => options.onSync)) offs[2] ??= stream.onSync((gap) => sync(reading, gap))
  }

  function hear(reading: Reading, event: StreamEvent): Promise<unknown> | undefined {
    positionWaiting()
    const settled: Promise<unknown>[] = []
    for (const member of members) {
      if (member.reading !== reading || !member.reads) continue
      // It has left in this turn, and goes on with this event when it returns.
      if (!member.isIn) drop(member)
      else if (member.awaited === undefined) {
        const handled = member.receive(event)
        if (handled) settled.push(handled)
      } else if (member.awaited === event.id) member.awaited = undefined
    }
    meet(reading, event.id)
    return settled.length ? Promise.all(settled) : undefined
  }

  function sync(reading: Reading, gap: SyncRequired): Promise<unknown> | undefined {
    const settled: unknown[] = []
    for (const member of members) {
      // The gap stands for all that a member has missed, wherever it was.
      if (!isOn(member, reading) || !member.reads) continue
      if (!member.isIn) {
        drop(member)
        continue
      }
      if (!member.reading) attach(member, reading)
      member.awaited = undefined
      settled.push(member.sync(gap))
    }
    return Promise.all(settled)
  }

  /** Positions members that had to wait until the stream knows its own position. */
  function positionWaiting(): void {
    for (const member of members) if (!member.reading && !behind.has(member)) position(member)
  }

  /** Ends the second stream when both are at the same event. */
  function meet(reading: Reading, id: string | null): void {
    const other = reading === main ? side : main
    if (!side || !id || other?.stream.cursor !== id) return
    const caughtUp = [...behind].filter(({ awaited }) => awaited === undefined)
    side = end(side)
    for (const member of caughtUp) {
      behind.delete(member)
      attach(member, main!)
    }
    // Their last event did not come by: they left at a position without an event of this stream.
    for (const member of behind) member.reading = undefined
    catchUp()
  }

  /** A member without a position belongs to the first stream. */
  function isOn(member: Member, reading: Reading): boolean {
    return member.reading === reading || (!member.reading && reading === main && !behind.has(member))
  }

  function isRead(reading: Reading | undefined): boolean {
    return [...members].some((member) => member.reads && member.reading === reading)
  }

  // `connect` would report the first four as unknown options.
  function renew(member: Member, before?: StoreOptions): void {
    const { reduce, initial, onEvent, onSync, ...options } = member.options
    // A component that leaves an option out does not reset it for the others.
    for (const [name, value] of Object.entries({ ...options, ...member.watch?.(member, members, shared, startAnew) }))
      if (value !== undefined) shared[name as 'from'] = value as string
    const { token, headers, fetch } = shared
    Object.assign(sideOptions, { token, headers, fetch })
    for (const reading of [main, side]) {
      if (!reading) continue
      listen(reading)
      // Only a token that this component has changed: two components with different tokens would replace them for ever.
      const isChanged = typeof options.token === 'string' && options.token !== before?.token
      if (isChanged && (before || reading.stream.state.state === 'closed')) reading.stream.reconnect()
    }
  }

  function end(reading: Reading | undefined): undefined {
    for (const off of reading?.offs ?? []) off?.()
    if (!given) reading?.stream.close()
  }
}

/** Credentials of its own rank above reading, and a component that shows only the connection ranks below both. */
function rankOf({ options, reads }: Member): number {
  return (trustIn(options) && 2) + Number(reads)
}

/** @returns the events after the one with this id; undefined when the stream does not show that one any more */
function eventsAfter(id: string, stream: EventStream): readonly StreamEvent[] | undefined {
  const { events } = stream.getSnapshot()
  const index = events.findIndex((event) => event.id === id)
  return index < 0 ? undefined : events.slice(index + 1)
}

/** Counts the members that have left, so that it shows which of them left earlier. */
let departures = 0

export interface StreamGroup {
  /** Whom the credentials name that a function has given, if they are a JWT. */
  subject?: string | undefined
  stream(): EventStream | undefined
  /** Whether the group goes on, with these components or without. */
  isFor(joining: readonly Member[]): boolean
  add(member: Member): void
  /** Lets go of the other members. */
  retain(isWanted: (member: Member) => boolean): void
  /** Opens the stream for the members that were added. */
  start(): void
  /**
   * Takes over the options of a later rendering. Only credentials and `fetch` have an effect: `connect` reads them again
   * before each attempt. A `token` with another text is used at once, from the cursor.
   *
   * @param before - what the same component gave earlier
   */
  renew(member: Member, before?: StoreOptions): void
  /** Members whose credentials are as good as any are taken for the same user's, and go on at their cursors. */
  close(): void
}

/** A component, as far as streams are concerned. */
export interface Member {
  /** False for a component that shows only the connection, and ignores events. */
  readonly reads: boolean
  options: StoreOptions
  /** Whether the component is there. */
  isIn: boolean
  /** Up to where a component that has left has got everything. */
  cursor: string | null
  leftAt: number
  group?: StreamGroup | undefined
  reading?: Reading | undefined
  /** The last event that the member has got, while its stream repeats earlier ones. */
  awaited?: string | undefined
  readonly watch: typeof watchUser | undefined
  /** As whom the member has read, if a JWT has told. */
  subject?: string | undefined
  /** @param isFresh - the component starts with what the stream still shows */
  begin(stream: EventStream, isFresh: boolean): void
  /** @returns a promise for the handler, when that returned one */
  receive(event: StreamEvent): Promise<unknown> | undefined
  sync(gap: SyncRequired): unknown
  /** The member has left, or goes on with another stream: as another user, or at its cursor. */
  end(isOther: boolean): void
  /** The stream cannot be opened. */
  fail(error: unknown): void
}

export interface Reading {
  readonly stream: EventStream
  /** How to take each handler off the stream: for states, events and gaps. */
  readonly offs: (Off | undefined)[]
}
