import { isAfter, type Position } from '@rejoin/protocol'
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

/** Reads the events of `channels` after `cursor`, up to the position that the reads of all channels have reached. */
export async function readReplay(
  blocks: Blocks,
  channels: readonly string[],
  cursor: Position,
  head: Position,
): Promise<Replay | Gap> {
  const answers = await Promise.all(channels.map((channel) => blocks.read(channel, cursor, head)))
  const gaps = answers.filter((answer): answer is Gap => 'channels' in answer)
  if (gaps.length > 0) return mergeGaps(gaps)
  const read = answers as Block[]
  const through = read.map((block) => block.through).reduce((a, b) => (isAfter(a, b) ? b : a))
  return { frames: mergeInOrder(read.map((block) => stretchOf(block, cursor, through))), through }
}

function mergeGaps(gaps: readonly Gap[]): Gap {
  return {
    channels: gaps.flatMap((gap) => gap.channels),
    reason: reasonOf(gaps),
    wholeAfter: gaps.map((gap) => gap.wholeAfter).reduce((a, b) => (isAfter(a, b) ? a : b)),
  }
}

function reasonOf(gaps: readonly Gap[]): Gap['reason'] {
  const has = (reason: Gap['reason']) => gaps.some((gap) => gap.reason === reason)
  if (has('forced')) return 'forced'
  return has('epoch') ? 'epoch' : 'expired'
}
