import { type Branch, branchAt, isAfter, isSame, type Position } from '@rejoin/protocol'
import type { LogEvent, Tail, TailBatch } from '../contract.ts'
import { lostAt } from './branches.ts'
import { createInternedNames, fedAfterOf, isFedAfter, parseEntry, parsePosition, positionText } from './entry.ts'
import type { ReadyConnection } from './handshake.ts'
import { backoff, type Link, pause, within } from './link.ts'
import type { KnownState } from './state.ts'

export interface TailOptions {
  readonly link: Link
  readonly state: KnownState
  readonly prefix: string
  readonly after: Position
  /** Brings the history up to date. */
  refresh(): Promise<void>
  /** Called when the log goes on from `fork` without a branch, and lacks events that this tail has read after it. */
  onPutBack(fork: Position): Promise<void>
  onBatch(batch: TailBatch): void
  /** Called when Redis has answered the tail. */
  onContact(): void
}

// A read waits for `blockMs` for a new entry. When no answer has come after `graceMs` more, the connection is dead.
const blockMs = 2000
const graceMs = 2000
// The size of one read: a few milliseconds of work, after which other tasks have their turn.
const readBytes = 512 * 1024
const readEvents = { least: 16, most: 1000 }

// In a busy log, each read would bring the entries of one append call, and cost more than that call. After a short rest, one read
// brings the entries of several calls. A read that brought few entries, or a full page, is followed by the next at once.
const restMs = 3
const much = 16

/**
 * Follows the feed from a position on, over a connection of its own. Each entry names the entry before it, so a missing entry
 * shows, for whatever reason it is missing. The `after` of the next batch then says from where the tail goes on.
 */
export async function followFeed(options: TailOptions): Promise<Tail> {
  const { link, state, prefix, refresh, onPutBack, onBatch, onContact } = options
  const feedKey = `${prefix}feed`
  let cursor = options.after
  let branch = branchOf(cursor)
  let entryBytes = 1000
  const interned = createInternedNames()
  let ready: ReadyConnection | undefined
  let closed = false

  state.channels.startAt(cursor)

  function branchOf(position: Position): Branch {
    return branchAt(state.history, position) ?? (state.history[0] as Branch)
  }

  async function follow(): Promise<void> {
    for (let failures = 0; !closed; ) {
      try {
        ready ??= await link.open()
        failures = 0
        resume()
        for (;;) await read(ready)
      } catch {
        // For any error: the next connection goes on from the cursor, or finds out that it cannot.
        ready?.connection.destroy()
        ready = undefined
        failures += 1
        if (!closed) await pause(backoff(failures))
      }
    }
  }

  /**
   * Called after a look at the log. When the cursor was lost with its branch, goes on from the first position of the next one.
   */
  function resume(): void {
    if (closed) return
    const lost = lostAt(state.history, branch.epoch, cursor)
    if (lost) goOnFrom(lost.first)
  }

  function goOnFrom(position: Position): void {
    cursor = position
    branch = branchOf(position)
    state.see(position, branch.epoch)
    onBatch({ after: position, branch, events: [] })
  }

  async function read({ connection }: ReadyConnection): Promise<void> {
    const count = Math.ceil(Math.min(readEvents.most, Math.max(readEvents.least, readBytes / entryBytes)))
    const found = await readFeed(connection, count, true)
    if (closed) throw new Error('closed')
    if (found.length === 0) return lookForMissing()
    await deliver(found)
    if (found.length >= much && found.length < count) await pause(restMs)
  }

  async function readFeed(connection: ReadyConnection['connection'], count: number, wait: boolean): Promise<Entry[]> {
    const blocking = wait ? ['BLOCK', String(blockMs)] : []
    const command = ['XREAD', 'COUNT', String(count), ...blocking, 'STREAMS', feedKey, positionText(cursor)]
    const reply = (await within(blockMs + graceMs, () => connection.send(command))) as FeedReply
    onContact()
    // RESP 2 answers with a list of streams, RESP 3 with a map, which ioredis makes a flat list.
    return (typeof reply?.[0] === 'string' ? (reply[1] as Entry[]) : reply?.[0]?.[1]) ?? []
  }

  /** Called when a read brought no entry. Asks whether the log has a newer one, and whether it is still the same log. */
  async function lookForMissing(): Promise<void> {
    const { connection } = ready as ReadyConnection
    const seen = positionText(state.seen ?? cursor)
    const head = await within(graceMs, () => link.stepOver(ready as ReadyConnection, 'look', seen, ''))
    const [last = ''] = head as string[]
    if (last.startsWith('!')) {
      ready = await link.handshakeAgain(ready as ReadyConnection)
      resume()
      return
    }
    if (!isAfter(parsePosition(last), cursor)) return
    const found = await readFeed(connection, readEvents.most, false)
    if (found.length > 0) return deliver(found)
    // The feed has trimmed the newer entries.
    await refresh()
    if (closed) return
    state.channels.startAt(parsePosition(last))
    goOnFrom(parsePosition(last))
  }

  async function deliver(entries: readonly Entry[]): Promise<void> {
    let after = cursor
    let events: LogEvent[] = []
    const hand = () => {
      if (closed || (events.length === 0 && isSame(after, cursor))) return
      cursor = events.at(-1)?.position ?? after
      state.see(cursor, branch.epoch)
      // A live event is not held, so nobody can lose it.
      for (const { kind, channel, position } of events) if (kind !== 'live') state.channels.note(channel, position)
      onBatch({ after, branch, events })
    }
    let bytes = 0
    let lastId = positionText(cursor)
    for (const [id, [, value]] of entries) {
      const { event, isBranch } = parseEntry(id, value, interned)
      bytes += value.length
      if (isBranch || !isFedAfter(value, lastId)) {
        hand()
        const fedAfter = fedAfterOf(value)
        if (!isBranch && isAfter(parsePosition(lastId), fedAfter)) await onPutBack(fedAfter)
        // The history has to name the branch before the hub hears of a position on it.
        await refresh()
        after = isBranch ? event.position : fedAfter
        if (!isBranch) state.channels.startAt(after)
        branch = branchOf(after)
        events = []
      }
      if (!isBranch) events.push(event)
      lastId = id
    }
    hand()
    entryBytes = (entryBytes + bytes / entries.length) / 2
  }

  ready = await link.open()
  resume()
  // Delivers the entries that are there already before the caller gets the tail.
  const found = await readFeed(ready.connection, readEvents.most, false)
  if (found.length > 0) await deliver(found)
  void follow()
  return {
    close() {
      closed = true
      ready?.connection.destroy()
    },
  }
}

type FeedReply = [key: string, entries: Entry[]] | [[key: string, entries: Entry[]]] | null
type Entry = [id: string, fields: [name: string, value: string]]
