import { covers, isAfter, isPattern, latest, type Position } from '@rejoin/protocol'
import type { Gap, Log, LogEvent } from '../../log/contract.ts'
import { indexAfter, type Stretch } from '../../log/in-order.ts'
import type { SliceQueue } from '../../slice-queue.ts'
import { costOf, type Frame } from '../live/frame.ts'

/** Everything of one channel or pattern after `after`, up to `through`, encoded. */
export interface Block {
  readonly after: Position
  readonly through: Position
  readonly frames: readonly Frame[]
  /** What it costs to keep. */
  readonly bytes: number
}

/**
 * Reads of the log, shared. Readers that come back together hold different cursors, so no two of them want the same page;
 * but a block that starts at a round position serves all whose cursor lies in it. So a rush costs reads in proportion to the
 * channels, not to the readers.
 */
export interface Blocks {
  /** A block that leads on from `cursor`, read now unless it is at hand. */
  read(name: string, cursor: Position, through: Position): Promise<Block | Gap>
  /** Blocks with anything of this channel are invalid. */
  invalidate(channel: string): void
  /** All blocks are invalid. */
  clear(): void
}

export interface BlocksOptions {
  readonly log: Log
  readonly maxBytes: number
  /** Gives each read its time. A log in this process answers within the turn, so that many reads at once would be one turn. */
  readonly slices: SliceQueue
  encode(events: readonly LogEvent[]): Frame[]
}

const blockEvents = 1024
// Encoding one takes a millisecond; a reader of many channels holds one of each.
const blockBytes = 256 * 1024
// Blocks start at multiples of this, so that cursors a few seconds apart fall into the same one. Larger shares more in a
// rush; smaller reads less that nobody needs: at 5,000 events/s this is 20 blocks.
const alignMs = 4096
// Those of patterns, which may be all that the hub is sent.
const patternAlignMs = 64
// How many reads the log has to answer at once; more would only queue there, in front of the tail.
const maxReads = 4
// Those of one round position and a few before it, in one busy channel; and the megabyte that all may cost.
const maxBorders = 64
const maxBordersInAll = 16_384
// An empty block is worth keeping, and has to go some day as well.
const blockOverhead = 200

export function createBlocks({ log, maxBytes, slices, encode }: BlocksOptions): Blocks {
  const held = new Map<string, Block[]>()
  const inFlight = new Map<string, Promise<Block | Gap>>()
  const borders = createBorders()
  const queue = createTickets(maxReads, slices)
  // Oldest first, to know what goes.
  let order: { name: string; block: Block }[] = []
  let bytes = 0
  let invalidations = 0
  let clearings = 0

  function find(name: string, cursor: Position): Block | undefined {
    return held.get(name)?.find((block) => !isAfter(block.after, cursor) && isAfter(block.through, cursor))
  }

  async function read(name: string, cursor: Position, through: Position): Promise<Block | Gap> {
    const nothing = { after: cursor, through: cursor, frames: [], bytes: 0 }
    if (!isAfter(through, cursor)) return nothing
    const asOf = clearings
    let start = borders.before(name, cursor)
    for (;;) {
      const found = find(name, cursor)
      if (found) return found
      const answer = await readOnce(name, start, through)
      // The head that this is to be read through may be of a branch that is no more, and past all that the log has now.
      if (clearings !== asOf) return nothing
      if (!('channels' in answer)) {
        if (isAfter(answer.through, cursor)) return answer
        start = answer.through
      } else if (isAfter(answer.wholeAfter, cursor)) {
        // The round position is gone. What the log says of the cursor itself is what the reader is told.
        return share(`${cursor.ms}.${cursor.seq} ${name} itself`, () => loadAt(name, cursor, through))
      } else {
        start = answer.wholeAfter
      }
    }
  }

  function readOnce(name: string, after: Position, through: Position): Promise<Block | Gap> {
    const asOf = invalidations
    return share(`${after.ms}.${after.seq} ${name}`, () => load(name, after, through, asOf))
  }

  /** One read under way for all who need the same. */
  function share(key: string, read: () => Promise<Block | Gap>): Promise<Block | Gap> {
    let reading = inFlight.get(key)
    if (!reading) {
      reading = queue.take(read).finally(() => inFlight.delete(key))
      inFlight.set(key, reading)
    }
    return reading
  }

  /** @param asOf - the invalidations when this was asked for, before it waited for its turn */
  async function load(name: string, after: Position, through: Position, asOf: number): Promise<Block | Gap> {
    // What was read while this waited for its turn may lead on from here.
    const found = find(name, after)
    if (found) return found
    const block = await loadAt(name, after, through)
    // Asked for before an invalidation and kept after it, a block would serve invalidated events, or reach to a head that is lost.
    if (!('channels' in block) && asOf === invalidations) keep(name, block)
    return block
  }

  async function loadAt(name: string, after: Position, through: Position): Promise<Block | Gap> {
    const page = await log.read([name], after, through, { events: blockEvents, bytes: blockBytes })
    if (page.gap) return page.gap
    borders.add(name, page.completeThrough)
    const frames = encode(page.events)
    const broken = brokenLink(frames, after)
    if (broken) return { channels: [name], reason: 'expired', wholeAfter: broken.previous }
    return { after, through: page.completeThrough, frames, bytes: frames.reduce(addCost, blockOverhead) }
  }

  function keep(name: string, block: Block): void {
    const blocks = held.get(name) ?? []
    held.set(name, blocks)
    blocks.push(block)
    order.push({ name, block })
    bytes += block.bytes
    while (bytes > maxBytes) drop()
  }

  function drop(): void {
    const oldest = order.shift()
    if (!oldest) return
    bytes -= oldest.block.bytes
    const blocks = held.get(oldest.name)?.filter((block) => block !== oldest.block) ?? []
    if (blocks.length > 0) held.set(oldest.name, blocks)
    else held.delete(oldest.name)
  }

  return {
    read,
    invalidate(channel) {
      invalidations += 1
      order = order.filter(({ name }) => {
        const isVoid = covers(name, channel)
        if (isVoid) held.delete(name)
        return !isVoid
      })
      bytes = order.reduce((sum, entry) => sum + entry.block.bytes, 0)
    },
    clear() {
      invalidations += 1
      clearings += 1
      borders.clear()
      held.clear()
      // What is being read may be of a branch that is no more. Nobody who comes from now on takes it for theirs.
      inFlight.clear()
      order = []
      bytes = 0
    },
  }
}

/** The part of a block after `cursor`, not past `through`. */
export function stretchOf({ frames }: Block, cursor: Position, through: Position): Stretch<Frame> {
  return { items: frames, from: indexAfter(frames, cursor), to: indexAfter(frames, through) }
}

/**
 * The first frame that follows one which is neither here nor behind the start. A log reports its own trims; this sees what
 * was taken from under it, by an operator or an eviction.
 */
function brokenLink(frames: readonly Frame[], after: Position): Frame | undefined {
  const newest = new Map<string, Position>()
  return frames.find(({ channel, position, previous }) => {
    const before = newest.get(channel) ?? after
    newest.set(channel, position)
    return isAfter(previous, before)
  })
}

/**
 * Where blocks have ended, also those that were let go since: a few numbers each. A reader that comes to the end of a
 * block goes on from there, and does not read from the round position again, which over a long replay would be all of it for
 * every part.
 */
function createBorders(): Borders {
  const known = new Map<string, Position[]>()
  let count = 0
  return {
    before(channel, cursor) {
      const positions = known.get(channel) ?? []
      return positions.reduce(
        (best, position) => (isAfter(position, cursor) ? best : latest(best, position)),
        align(channel, cursor),
      )
    },
    add(channel, position) {
      const positions = known.get(channel) ?? []
      // What came in last is what is read now.
      known.delete(channel)
      known.set(channel, positions.length < maxBorders ? [...positions, position] : [...positions.slice(1), position])
      if (positions.length < maxBorders) count += 1
      for (const [oldest, { length }] of known) {
        if (count <= maxBordersInAll || oldest === channel) break
        known.delete(oldest)
        count -= length
      }
    },
    clear() {
      known.clear()
      count = 0
    },
  }
}

interface Borders {
  /** The last position before `cursor`, or at it, where a read may well start. */
  before(channel: string, cursor: Position): Position
  add(channel: string, position: Position): void
  clear(): void
}

function align(name: string, { ms, seq }: Position): Position {
  const roundMs = isPattern(name) ? patternAlignMs : alignMs
  // A counter clock leaves ms at 0, and its positions are counted in blocks instead.
  return ms === 0 ? { ms, seq: seq - (seq % blockEvents) } : { ms: ms - (ms % roundMs), seq: 0 }
}

function addCost(sum: number, frame: Frame): number {
  return sum + costOf(frame)
}

/** Runs at most `limit` tasks at a time, in the order in which they came and when the turn has time for them. */
function createTickets(
  limit: number,
  slices: SliceQueue,
): { take<Result>(task: () => Promise<Result>): Promise<Result> } {
  const waiting: (() => void)[] = []
  let free = limit
  return {
    async take(task) {
      if (free === 0) await new Promise<void>((resolve) => void waiting.push(resolve))
      else free -= 1
      try {
        return await slices.take(task)
      } finally {
        const next = waiting.shift()
        if (next) next()
        else free += 1
      }
    },
  }
}
