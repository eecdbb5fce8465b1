import { gravestLoss, isAfter, isSame, isSamePoint, latest, type Point, type Position } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import type { Gap, Log } from '../../log/contract.ts'
import { indexAfter, mergeInOrder } from '../../log/in-order.ts'
import type { Frame } from '../live/frame.ts'
import type { Live } from '../live/live.ts'
import { addParts } from '../live/shape.ts'
import { type SharedBytes, shareBytes } from '../live/sink.ts'
import { type Subscription, wantedOf } from '../live/subscription.ts'
import type { LogIds } from '../log-ids.ts'
import type { Block, Blocks, FoundGap } from './blocks.ts'
import { newestBranch } from './tail-wait.ts'

/**
 * The events behind a cursor, some at a time. The newest segment is the hot window; older segments are blocks, which are read from
 * the log when they are not in memory.
 */
export interface Segments {
  /**
   * What follows after `cursor`: at once when it is in memory, so that a reader can join the live side in the same synchronous
   * step; else a promise. Check `isCurrent` before you use what a promise has brought.
   */
  read(subscription: Subscription, cursor: Point): Segment | Promise<Segment>
  /** Whether the hub and its log are still on the branches on which the segment was read. */
  isCurrent(segment: Segment): boolean
}

export type Segment = FrameSegment | GapSegment

export interface FrameSegment {
  readonly kind: 'frames'
  /** Cut lazily: what the reader does not take costs nothing. The rest can be read again. */
  readonly slices: Iterable<Slice>
  readonly readOn?: Branches
}

/** Events after the cursor are gone. */
export interface GapSegment extends FoundGap {
  readonly readOn?: Branches
}

/** What a reader gets in one slice of time. */
export interface Slice {
  readonly frames: readonly Frame[]
  /** The frames that the subscription asks for. */
  readonly wanted: readonly Frame[]
  /** The bytes of the wanted frames, when several readers share them. */
  readonly bytes?: SharedBytes | undefined
  /** Everything up to here is in `frames`, or was in earlier slices. */
  readonly through: Point
  /** Whether `through` is the head, where a reader joins the live side. */
  readonly isHead: boolean
}

/** The epochs of the hub's head and of the log's newest branch. While both stand still, a read stays true. */
interface Branches {
  readonly head: string
  readonly newest: string
}

export interface SegmentsContext extends Pick<LogIds, 'pointAt'> {
  readonly log: Pick<Log, 'history'>
  readonly live: Live
  readonly blocks: Blocks
  readonly environment: Pick<Environment, 'after'>
}

/** The most bytes of one slice. */
export const sliceBytes = 64 * 1024
// Frames are limited as well as bytes: a reader's filter may reject all of a hundred thousand small frames.
const sliceFrames = 1024

export function createSegments({ log, live, blocks, environment, pointAt }: SegmentsContext): Segments {
  const hotSlices = createHotSlices(live, environment)
  const branches = (): Branches => ({ head: live.head.branch.epoch, newest: newestBranch(log).epoch })

  /** Cuts frames into slices. The last slice may be empty. */
  function* cut(subscription: Subscription, frames: Iterable<Frame>, through: Position): Generator<Slice> {
    let some: Frame[] = []
    let bytes = 0
    for (const frame of frames) {
      if (bytes >= sliceBytes || some.length >= sliceFrames) {
        yield sliceOf(subscription, some, pointAt((some.at(-1) as Frame).position))
        some = []
        bytes = 0
      }
      some.push(frame)
      bytes += frame.bytes.length
    }
    yield sliceOf(subscription, some, pointAt(through))
  }

  function sliceOf(subscription: Subscription, frames: readonly Frame[], through: Point): Slice {
    return { frames, wanted: wantedOf(subscription, frames), through, isHead: isSamePoint(through, live.head) }
  }

  /**
   * Joins the blocks of all selectors, up to the position that all of them have reached. What the channels hold before a mark
   * comes first. A mark is a gap only when it is next, so that one channel's loss costs no event of another.
   */
  function join(
    subscription: Subscription,
    answers: readonly (Block | FoundGap)[],
    cursor: Position,
  ): Segment | Promise<Segment> {
    const gaps = answers.filter((answer) => answer.kind === 'gap')
    if (gaps.some(({ isMark }) => !isMark)) return mergeGaps(gaps)
    const read = answers.filter((answer) => answer.kind === 'frames')
    const end = [...read.map((block) => block.through), ...gaps.map((gap) => gap.wholeAfter)].reduce(earlier)
    const stretches = read.map(({ frames }) => {
      return { items: frames, from: indexAfter(frames, cursor), to: indexAfter(frames, end) }
    })
    const marks = gaps.filter(({ wholeAfter }) => isSame(wholeAfter, end))
    const last = stretches.flatMap(({ items, from, to }) => (to > from ? (items[to - 1] as Frame).position : []))
    if (marks.length > 0 && last.length === 0) return joinMarks(subscription, mergeGaps(marks))
    const through = marks.length === 0 ? end : last.reduce(latest)
    return { kind: 'frames', slices: cut(subscription, mergeInOrder(stretches), through) }
  }

  /** Marks with nothing between them are one gap: the reader is told once. */
  async function joinMarks(subscription: Subscription, mark: FoundGap): Promise<FoundGap> {
    const next = await readBlocks(subscription, mark.wholeAfter)
    return next.kind === 'gap' && next.isMark ? mergeGaps([mark, next]) : mark
  }

  function readBlocks(subscription: Subscription, cursor: Position): Segment | Promise<Segment> {
    const answers = subscription.selectors.map((name) => blocks.read(name, cursor, live.head.position))
    if (answers.every(isRead)) return join(subscription, answers, cursor)
    return Promise.all(answers).then((all) => join(subscription, all, cursor))
  }

  return {
    read(subscription, cursor) {
      if (live.hot.covers(subscription.selectors, cursor.position)) return hotSlices.read(subscription, cursor.position)
      const readOn = branches()
      const segment = readBlocks(subscription, cursor.position)
      return segment instanceof Promise ? segment.then((read) => ({ ...read, readOn })) : segment
    },
    isCurrent({ readOn }) {
      if (!readOn) return true
      const { head, newest } = branches()
      return readOn.head === head && readOn.newest === newest
    },
  }
}

function isRead(answer: Block | Promise<Block | FoundGap>): answer is Block {
  return !(answer instanceof Promise)
}

function earlier(a: Position, b: Position): Position {
  return isAfter(a, b) ? b : a
}

function mergeGaps(gaps: readonly FoundGap[]): FoundGap {
  const merged = {
    kind: 'gap' as const,
    channels: [...new Set(gaps.flatMap((gap) => gap.channels))],
    reason: gravestLoss(gaps.map((gap) => gap.reason)) as Gap['reason'],
    wholeAfter: gaps.map((gap) => gap.wholeAfter).reduce(latest),
  }
  if (gaps.some(({ isMark }) => !isMark)) return merged
  const lostBefore = gaps.map((gap) => gap.lostBefore ?? gap.wholeAfter).reduce(latest)
  return { ...merged, isMark: true, lostBefore }
}

// To copy fewer bytes for each reader takes less time than to write a second piece.
const shortBytes = 2048
// Segments of one slice each: 4 MB at worst, for as long as a rush lasts.
const maxKept = 64
const keptMs = 1000

/**
 * Slices of the hot window. Readers that are cut together return with the same cursor, so their frames are chosen and joined once
 * for all of them. Ten thousand copies would be 100 MB for the garbage collector.
 */
function createHotSlices(live: Live, environment: Pick<Environment, 'after'>) {
  const { hot } = live
  const kept = new Map<string, HotSlice>()
  let asOf = hot.changes
  let isClearing = false
  let lastAsked: HotSlice | undefined

  function clear(): void {
    kept.clear()
    lastAsked = undefined
  }

  function keep(key: string, slice: HotSlice): HotSlice {
    for (const oldest of kept.keys()) {
      if (kept.size < maxKept) break
      kept.delete(oldest)
    }
    kept.set(key, slice)
    if (!isClearing) {
      isClearing = true
      environment.after(keptMs, () => {
        isClearing = false
        clear()
      })
    }
    return slice
  }

  return {
    /** The first slice of the frames after `cursor`. */
    read(subscription: Subscription, cursor: Position): FrameSegment {
      if (asOf !== hot.changes) clear()
      asOf = hot.changes
      // In a rush, many readers ask for the same slice one after the other. Comparing is cheaper than building a key.
      if (lastAsked?.answers(subscription, cursor)) return lastAsked.shared()
      const key = `${cursor.ms}.${cursor.seq} ${subscription.key}`
      lastAsked = kept.get(key)
      // Joined only for the second reader: a reader that returns alone gets `hello` and its frames joined in one piece.
      if (lastAsked) return lastAsked.shared()
      lastAsked = new HotSlice(subscription, cursor, live)
      return keep(key, lastAsked)
    },
  }
}

/** A segment of one slice. While the hot window stands still, it ends where the live side is. */
class HotSlice implements FrameSegment, Slice {
  readonly kind = 'frames'
  readonly slices: readonly Slice[] = [this]
  readonly frames: readonly Frame[]
  readonly wanted: readonly Frame[]
  readonly #live: Live
  readonly #cutAt: Point | undefined
  readonly #subscription: Subscription
  readonly #after: Position
  bytes: SharedBytes | undefined

  constructor(subscription: Subscription, after: Position, live: Live) {
    const { frames, cut, through } = live.hot.slice(subscription.selectors, after, sliceBytes)
    this.frames = frames
    this.wanted = wantedOf(subscription, frames)
    this.#live = live
    this.#cutAt = cut ? { branch: live.head.branch, position: through } : undefined
    this.#subscription = subscription
    this.#after = after
  }

  /** The head may move without a frame for the hot window, by an event that is not kept. */
  get through(): Point {
    return this.#cutAt ?? this.#live.head
  }

  get isHead(): boolean {
    return this.#cutAt === undefined
  }

  answers({ key }: Subscription, after: Position): boolean {
    return isSame(after, this.#after) && key === this.#subscription.key
  }

  shared(): this {
    if (this.bytes === undefined && this.#isWorthSharing()) this.bytes = shareBytes(this.#parts())
    return this
  }

  #isWorthSharing(): boolean {
    let length = 0
    for (const { bytes } of this.wanted) {
      length += bytes.length
      // The outlet shares a frame of this size by itself.
      if (bytes.length >= sliceBytes) return false
    }
    return length >= shortBytes
  }

  #parts(): readonly Uint8Array[] {
    const parts: Uint8Array[] = []
    addParts(this.wanted, this.#subscription.shape, parts)
    return parts
  }
}
