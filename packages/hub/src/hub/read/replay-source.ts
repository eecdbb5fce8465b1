import { isAfter, type Position } from '@rejoin/protocol'
import type { Gap } from '../../log/contract.ts'
import { mergeInOrder } from '../../log/in-order.ts'
import type { Frame } from '../live/frame.ts'
import { type Block, type Blocks, stretchOf } from './blocks.ts'

/** What follows a cursor, over several channels, in order. */
export interface Replay {
  /** Walked lazily: what the reader does not take is not merged either. */
  readonly frames: Iterable<Frame>
  /** Everything up to here is in `frames`. */
  readonly through: Position
}

/** Reads what follows `cursor` in all `channels`, as far as every one of them was read. */
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
