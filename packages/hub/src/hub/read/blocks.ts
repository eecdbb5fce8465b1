import { covers, isAfter, isPattern, latest, type Position } from '@rejoin/protocol'
import type { Gap, Log, LogEvent } from '../../log/contract.ts'
import type { SliceQueue } from '../../slice-queue.ts'
import { costOf, type Frame } from '../live/frame.ts'

/** Every event of one channel or pattern after `after` and up to `through`, encoded. */
export interface Block {
  readonly kind: 'frames'
  readonly after: Position
  readonly through: Position
  readonly frames: readonly Frame[]
  /** The memory that it takes. */
  readonly bytes: number
}

/** A gap of the log, as a read finds it. */
export interface FoundGap extends Gap {
  readonly kind: 'gap'
}

/**
 * Shares reads of the log. Readers that return together have different cursors, so each would read a page of its own. A block
 * starts at a round position, and serves every reader whose cursor lies in it. So the reads of a rush grow with the number of
 * channels, not with the number of readers.
 */
export interface Blocks {
  /** A block that has the events right after `cursor`: at once when it is in memory, else when it has been read. */
  read(name: string, cursor: Position, through: Position): Block | Promise<Block | FoundGap>
  /** Drops the blocks that may have events of this channel. */
  invalidate(channel: string): void
  clear(): void
}

export interface BlocksOptions {
  readonly log: Log
  readonly maxBytes: number
  /** Gives each read a slice of time. A log in this process answers at once, so many reads together would make one long turn. */
  readonly slices: SliceQueue
  encode(events: readonly LogEvent[]): Frame[]
}

const blockEvents = 1024
// A block of this size is encoded in a millisecond. A reader of many channels holds a block of each.
const blockBytes = 256 * 1024
// Blocks start at multiples of this time, so that cursors a few seconds apart lie in the same block. A larger value shares more
// in a rush. A smaller value reads fewer events that nobody needs: at 5,000 events/s this is 20 blocks.
const alignMs = 4096
// The same for a pattern, which may match every event of the hub.
const patternAlignMs = 64
// Reads of the log at the same time. More would only wait inside the log, in front of the tail.
const maxReads = 4
// Borders of one channel: enough for one round position of a busy channel and a few before it. All together take a megabyte.
const maxBorders = 64
const maxBordersInAll = 16_384
// Empty blocks are kept too. This cost makes them go in the end.
const blockOverhead = 200

export function createBlocks({ log, maxBytes, slices, encode }: BlocksOptions): Blocks {
  const held = new Map<string, Block[]>()
  const inFlight = new Map<string, Promise<Block | FoundGap>>()
  const borders = createBorders()
  const queue = createTickets(maxReads, slices)
  // Oldest first: the first block is dropped first.
  let order: { name: string; block: Block }[] = []
  let bytes = 0
  let invalidations = 0
  let clearings = 0

  function find(name: string, cursor: Position): Block | undefined {
    return held.get(name)?.find((block) => !isAfter(block.after, cursor) && isAfter(block.through, cursor))
  }

  async function readLog(name: string, cursor: Position, through: Position): Promise<Block | FoundGap> {
    const asOf = clearings
    let start = borders.before(name, cursor)
    for (;;) {
      const answer = find(name, cursor) ?? (await readOnce(name, start, through))
      // `through` may be the head of a lost branch, behind everything that the log has now.
      if (clearings !== asOf) return nothingAfter(cursor)
      if (answer.kind === 'frames') {
        if (isAfter(answer.through, cursor)) return answer
        start = answer.through
      } else if (isAfter(answer.wholeAfter, cursor)) {
        // The round position is gone. The reader is told what the log says of the cursor itself.
        return share(`${cursor.ms}.${cursor.seq} ${name} itself`, () => loadAt(name, cursor, through))
      } else {
        start = answer.wholeAfter
      }
    }
  }

  function readOnce(name: string, after: Position, through: Position): Promise<Block | FoundGap> {
    const asOf = invalidations
    return share(`${after.ms}.${after.seq} ${name}`, () => load(name, after, through, asOf))
  }

  /** Readers that need the same read share it. */
  function share(key: string, read: () => Promise<Block | FoundGap>): Promise<Block | FoundGap> {
    let reading = inFlight.get(key)
    if (!reading) {
      reading = queue.take(read).finally(() => inFlight.delete(key))
      inFlight.set(key, reading)
    }
    return reading
  }

  /** @param asOf - `invalidations` from before the read waited for its turn */
  async function load(name: string, after: Position, through: Position, asOf: number): Promise<Block | FoundGap> {
    // Another read may have brought this block while this one waited for its turn.
    const found = find(name, after)
    if (found) return found
    const block = await loadAt(name, after, through)
    // A block from before an invalidation may have invalidated events, or reach to the head of a lost branch.
    if (block.kind === 'frames' && asOf === invalidations) keep(name, block)
    return block
  }

  async function loadAt(name: string, after: Position, through: Position): Promise<Block | FoundGap> {
    const page = await log.read([name], after, through, { events: blockEvents, bytes: blockBytes })
    if (page.gap) return { kind: 'gap', ...page.gap }
    borders.add(name, page.completeThrough)
    const frames = encode(page.events)
    const broken = brokenLink(frames, after)
    if (broken) return { kind: 'gap', channels: [name], reason: 'expired', wholeAfter: broken.previous }
    const bytes = frames.reduce(addCost, blockOverhead)
    return { kind: 'frames', after, through: page.completeThrough, frames, bytes }
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
    read(name, cursor, through) {
      if (!isAfter(through, cursor)) return nothingAfter(cursor)
      return find(name, cursor) ?? readLog(name, cursor, through)
    },
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
      // The reads under way may be of a lost branch. Readers that come from now on must not share them.
      inFlight.clear()
      order = []
      bytes = 0
    },
  }
}

function nothingAfter(cursor: Position): Block {
  return { kind: 'frames', after: cursor, through: cursor, frames: [], bytes: 0 }
}

/**
 * The first frame whose previous event is missing: it is neither in the block nor before it. A log reports the events that it
 * trims itself. This finds events that were removed without the log, by an operator or by an eviction.
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
 * Where blocks have ended, dropped blocks included: a few numbers each. A reader that comes to the end of a block reads on from
 * there. Without borders it would read from the round position again, and a long replay would read everything again for each
 * part.
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
      // Moved to the end: the channel that was read last is forgotten last.
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
  /** The last border, or round position, at or before `cursor`. */
  before(channel: string, cursor: Position): Position
  add(channel: string, position: Position): void
  clear(): void
}

function align(name: string, { ms, seq }: Position): Position {
  const roundMs = isPattern(name) ? patternAlignMs : alignMs
  // A counter clock leaves ms at 0. Its positions are rounded by number.
  return ms === 0 ? { ms, seq: seq - (seq % blockEvents) } : { ms: ms - (ms % roundMs), seq: 0 }
}

function addCost(sum: number, frame: Frame): number {
  return sum + costOf(frame)
}

/** Runs at most `limit` tasks at a time, in order, each when the turn has time for it. */
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
