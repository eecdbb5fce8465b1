import type { Position } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import type { Frame } from '../live/frame.ts'
import { shapedParts } from '../live/shape.ts'
import { type SharedBytes, shareBytes } from '../live/sink.ts'
import { type Subscription, wants } from '../live/subscription.ts'
import type { HotWindow, Slice } from './hot-window.ts'
import { sliceBytes } from './replay-slices.ts'

/** What a reader is replayed from the hot window. */
export interface HotReplay extends Slice {
  /** The frames that its subscription asks for. */
  readonly wanted: readonly Frame[]
  /** The bytes of these frames, once they were joined for several readers. */
  readonly bytes: SharedBytes | undefined
}

/**
 * Replays from the hot window. Readers that are cut together return with the same cursor, so the frames are chosen once and
 * joined once for all of them. A copy for each of ten thousand readers is 100 MB for the collector to count.
 */
export interface SharedReplays {
  /** What follows `after`, or the first slice of it. */
  of(subscription: Subscription, after: Position): HotReplay
}

// What is shorter is copied for each reader in less time than a second piece takes to write.
const shortBytes = 2048
// Of one slice each: 4 MB at worst, for as long as a rush lasts.
const maxKept = 64
const keptMs = 1000

export function createSharedReplays(hot: HotWindow, environment: Pick<Environment, 'after'>): SharedReplays {
  const kept = new Map<string, KeptReplay>()
  let asOf = hot.changes
  let isClearing = false

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
        kept.clear()
      })
    }
    return replay
  }

  return {
    of(subscription, after) {
      if (asOf !== hot.changes) kept.clear()
      asOf = hot.changes
      const key = `${after.ms}.${after.seq} ${subscription.key}`
      const found = kept.get(key)
      // Joined for the second reader: a reader that returns alone has its frames joined behind its `hello`, in one piece.
      if (found) return found.shared()
      return keep(key, new KeptReplay(subscription, hot.slice(subscription.channels, after, sliceBytes)))
    },
  }
}

class KeptReplay implements HotReplay {
  readonly frames: readonly Frame[]
  readonly cut: boolean
  readonly through: Position
  readonly wanted: readonly Frame[]
  readonly #subscription: Subscription
  bytes: SharedBytes | undefined

  constructor(subscription: Subscription, { frames, cut, through }: Slice) {
    this.frames = frames
    this.cut = cut
    this.through = through
    this.wanted = subscription.types ? frames.filter((frame) => wants(subscription, frame)) : frames
    this.#subscription = subscription
  }

  shared(): this {
    if (this.bytes === undefined && this.#isWorthSharing()) this.bytes = shareBytes(this.#parts())
    return this
  }

  #isWorthSharing(): boolean {
    let length = 0
    for (const { bytes } of this.wanted) {
      length += bytes.length
      // A frame as large as a slice is shared by itself.
      if (bytes.length >= sliceBytes) return false
    }
    return length >= shortBytes
  }

  #parts(): readonly Uint8Array[] {
    const { shape } = this.#subscription
    return this.wanted.flatMap((frame) => (shape === undefined ? frame.bytes : [...shapedParts(frame, shape)]))
  }
}
