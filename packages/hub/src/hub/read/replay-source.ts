import { isAfter, isSame, latest, type Position } from '@rejoin/protocol'
import type { Gap } from '../../log/contract.ts'
import { mergeInOrder } from '../../log/in-order.ts'
import type { Frame } from '../live/frame.ts'
import { type Block, type Blocks, stretchOf } from './blocks.ts'

/** The frames behind a cursor, of several channels, in order. */
export interface Replay {
  /** Merged lazily: frames that the reader does not take cost nothing. */
  readonly frames: Iterable<Frame>
  /** Everything up to here is in `frames`. */
  readonly through: Position
}

/**
 * Reads the events of `channels` after `cursor`, up to the position that the reads of all channels have reached. What the channels
 * hold before a mark comes first. A mark is a gap only when it is next, so that one channel's loss costs no event of another.
 */
export async function readReplay(
  blocks: Blocks,
  channels: readonly string[],
  cursor: Position,
  head: Position,
): Promise<Replay | Gap> {
  const answers = await Promise.all(channels.map((channel) => blocks.read(channel, cursor, head)))
  const gaps = answers.filter((answer): answer is Gap => 'channels' in answer)
  if (gaps.some(({ isMark }) => !isMark)) return mergeGaps(gaps)
  const read = answers.filter((answer): answer is Block => !('channels' in answer))
  const end = [...read.map((block) => block.through), ...gaps.map((gap) => gap.wholeAfter)].reduce(earlier)
  const stretches = read.map((block) => stretchOf(block, cursor, end))
  const marks = gaps.filter(({ wholeAfter }) => isSame(wholeAfter, end))
  if (marks.length === 0) return { frames: mergeInOrder(stretches), through: end }
  const last = stretches.flatMap(({ items, from, to }) => (to > from ? (items[to - 1] as Frame).position : []))
  if (last.length > 0) return { frames: mergeInOrder(stretches), through: last.reduce(latest) }
  return joinedMarks(mergeGaps(marks), await readReplay(blocks, channels, end, head))
}

/** Marks with nothing between them are one gap: the reader is told once. */
function joinedMarks(mark: Gap, next: Replay | Gap): Gap {
  if (!('channels' in next) || !next.isMark) return mark
  return mergeGaps([mark, next])
}

function earlier(a: Position, b: Position): Position {
  return isAfter(a, b) ? b : a
}

function mergeGaps(gaps: readonly Gap[]): Gap {
  const merged = {
    channels: [...new Set(gaps.flatMap((gap) => gap.channels))],
    reason: reasonOf(gaps),
    wholeAfter: gaps.map((gap) => gap.wholeAfter).reduce(latest),
  }
  if (gaps.some(({ isMark }) => !isMark)) return merged
  const lostBefore = gaps.map((gap) => gap.lostBefore ?? gap.wholeAfter).reduce(latest)
  return { ...merged, isMark: true, lostBefore }
}

function reasonOf(gaps: readonly Gap[]): Gap['reason'] {
  const has = (reason: Gap['reason']) => gaps.some((gap) => gap.reason === reason)
  if (has('forced')) return 'forced'
  return has('epoch') ? 'epoch' : 'expired'
}
