import { type Branch, branchAt, isAfter, isSame, type Position } from '@rejoin/protocol'
import type { LogEvent, Tail, TailBatch } from '../contract.ts'
import { lostAt } from './branches.ts'
import { fedAfterOf, isFedAfter, parseEntry, parsePosition, positionText } from './entry.ts'
import type { Greeted } from './greeting.ts'
import { createInternedNames } from './interned-names.ts'
import { backoff, type Link, pause, within } from './link.ts'
import type { KnownState } from './state.ts'

export interface TailOptions {
  readonly link: Link
  readonly state: KnownState
  readonly prefix: string
  readonly after: Position
  /** Brings the history up to date. */
  refresh(): Promise<void>
  /** The log has gone on from here, without a branch, and no longer holds what this tail read behind it. */
  onPutBack(fork: Position): Promise<void>
  onBatch(batch: TailBatch): void
  /** Told that Redis has answered the tail just now. */
  onContact(): void
}

// How long one read waits for news. A connection that says nothing for longer than that and this is dead.
const blockMs = 2000
const graceMs = 2000
// What one read should bring: a few milliseconds of work, after which others have their turn.
const readBytes = 512 * 1024
const readEvents = { least: 16, most: 1000 }

// Where much comes, each read would bring what one call of a hub has appended, and cost more than that does. After a short
// rest it brings that of several; one that brought little, or as much as it may, is followed by the next at once.
const restMs = 3
const much = 16

/**
 * Follows the feed from a position on, over a connection of its own. Each entry names the one before it, so what is missing
 * shows by itself, whoever took it; the batch then says from where it goes on.
 */
export async function followFeed(options: TailOptions): Promise<Tail> {
  const { link, state, prefix, refresh, onPutBack, onBatch, onContact } = options
  const feedKey = `${prefix}feed`
  let cursor = options.after
  let branch = branchOf(cursor)
  let entryBytes = 1000
  const interned = createInternedNames()
  let greeted: Greeted | undefined
  let closed = false

  state.channels.startAt(cursor)

  function branchOf(position: Position): Branch {
    return branchAt(state.history, position) ?? (state.history[0] as Branch)
  }

  async function follow(): Promise<void> {
    for (let failures = 0; !closed; ) {
      try {
        greeted ??= await link.open()
        failures = 0
        resume()
        for (;;) await read(greeted)
      } catch {
        // Whatever it was, the next connection goes on from the cursor, or finds out that it cannot.
        greeted?.connection.destroy()
        greeted = undefined
        failures += 1
        if (!closed) await pause(backoff(failures))
      }
    }
  }

  /** After the log was looked at: a position that was lost with its branch is left for where the next one begins. */
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

  async function read({ connection }: Greeted): Promise<void> {
    const count = Math.ceil(Math.min(readEvents.most, Math.max(readEvents.least, readBytes / entryBytes)))
    const found = await readFeed(connection, count, true)
    if (closed) throw new Error('closed')
    if (found.length === 0) return lookForMissing()
    await deliver(found)
    if (found.length >= much && found.length < count) await pause(restMs)
  }

  async function readFeed(connection: Greeted['connection'], count: number, wait: boolean): Promise<Entry[]> {
    const blocking = wait ? ['BLOCK', String(blockMs)] : []
    const command = ['XREAD', 'COUNT', String(count), ...blocking, 'STREAMS', feedKey, positionText(cursor)]
    const reply = (await within(blockMs + graceMs, () => connection.send(command))) as FeedReply
    onContact()
    // A list of streams, or in the newer protocol a map, which ioredis lays out flat.
    return (typeof reply?.[0] === 'string' ? (reply[1] as Entry[]) : reply?.[0]?.[1]) ?? []
  }

  /** Nothing has come. That is well when the log has nothing; it also says whether it is still the same log. */
  async function lookForMissing(): Promise<void> {
    const { connection } = greeted as Greeted
    const seen = positionText(state.seen ?? cursor)
    const head = await within(graceMs, () => link.stepOver(greeted as Greeted, 'look', seen))
    const [last = ''] = head as string[]
    if (last.startsWith('!')) {
      greeted = await link.greetAgain(greeted as Greeted)
      resume()
      return
    }
    if (!isAfter(parsePosition(last), cursor)) return
    const found = await readFeed(connection, readEvents.most, false)
    if (found.length > 0) return deliver(found)
    // The feed has let go of what came, or somebody removed it.
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
      // Nobody is owed a live event.
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
        // Before anybody hears of a position on it, the branch has a name.
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

  greeted = await link.open()
  resume()
  // What is there already comes before anything else is done with the tail.
  const found = await readFeed(greeted.connection, readEvents.most, false)
  if (found.length > 0) await deliver(found)
  void follow()
  return {
    close() {
      closed = true
      greeted?.connection.destroy()
    },
  }
}

type FeedReply = [key: string, entries: Entry[]] | [[key: string, entries: Entry[]]] | null
type Entry = [id: string, fields: [name: string, value: string]]
