import { isSame, type Position } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import type { Frame } from '../live/frame.ts'
import { addParts } from '../live/shape.ts'
import { type SharedBytes, shareBytes } from '../live/sink.ts'
import { type Subscription, wantedOf } from '../live/subscription.ts'
import type { HotWindow, Slice } from './hot-window.ts'
import { sliceBytes } from './replay-slices.ts'

/** A slice of the hot window, for readers with one subscription. */
export interface HotReplay extends Slice {
  /** The frames that its subscription asks for. */
  readonly wanted: readonly Frame[]
  /** The bytes of the wanted frames, once several readers share them. */
  readonly bytes: SharedBytes | undefined
}

/**
 * Replays from the hot window. Readers that are cut together return with the same cursor, so their frames are chosen and joined
 * once for all of them. Ten thousand copies would be 100 MB for the garbage collector.
 */
export interface SharedReplays {
  /** The first slice of the frames after `after`. */
  of(subscription: Subscription, after: Position): HotReplay
}

// To copy fewer bytes for each reader takes less time than to write a second piece.
const shortBytes = 2048
// Replays of one slice each: 4 MB at worst, for as long as a rush lasts.
const maxKept = 64
const keptMs = 1000

export function createSharedReplays(hot: HotWindow, environment: Pick<Environment, 'after'>): SharedReplays {
  const kept = new Map<string, KeptReplay>()
  let asOf = hot.changes
  let isClearing = false
  let lastAsked: KeptReplay | undefined

  function clear(): void {
    kept.clear()
    lastAsked = undefined
  }

  function keep(key: string, replay: KeptReplay): KeptReplay {
    for (const oldest of kept.keys()) {
      if (kept.size < maxKept) break
      kept.delete(oldest)
    }
    kept.set(key, replay)
    if (!isClearing) {
      isClearing = true
      environment.after(keptMs, () => {
        isClearing = false
        clear()
      })
    }
    return replay
  }

  return {
    of(subscription, after) {
      if (asOf !== hot.changes) clear()
      asOf = hot.changes
      // In a rush, many readers ask for the same replay one after the other. To compare is faster than to make a key.
      if (lastAsked?.answers(subscription, after)) return lastAsked.shared()
      const key = `${after.ms}.${after.seq} ${subscription.key}`
      lastAsked = kept.get(key)
      // Joined only for the second reader: a reader that returns alone gets `hello` and its frames joined in one piece.
      if (lastAsked) return lastAsked.shared()
      lastAsked = new KeptReplay(subscription, after, hot.slice(subscription.selectors, after, sliceBytes))
      return keep(key, lastAsked)
    },
  }
}

class KeptReplay implements HotReplay {
  readonly frames: readonly Frame[]
  readonly cut: boolean
  readonly through: Position
  readonly wanted: readonly Frame[]
  readonly #subscription: Subscription
  readonly #after: Position
  bytes: SharedBytes | undefined

  constructor(subscription: Subscription, after: Position, { frames, cut, through }: Slice) {
    this.frames = frames
    this.cut = cut
    this.through = through
    this.wanted = wantedOf(subscription, frames)
    this.#subscription = subscription
    this.#after = after
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
