import type { Frame } from '../live/frame.ts'

/** One reader's share of a turn while it catches up. */
export const sliceBytes = 64 * 1024
const sliceFrames = 1024

/** Takes a replay apart into the shares of turns. The last one may be empty, as it is when there are no frames. */
export function* inSlices(frames: Iterable<Frame>): Generator<ReplaySlice> {
  let slice: Frame[] = []
  let bytes = 0
  for (const frame of frames) {
    // A filter may let through none of a hundred thousand frames, so they count as well.
    if (bytes >= sliceBytes || slice.length >= sliceFrames) {
      yield { slice, isLast: false }
      slice = []
      bytes = 0
    }
    slice.push(frame)
    bytes += frame.bytes.length
  }
  yield { slice, isLast: true }
}

export interface ReplaySlice {
  readonly slice: readonly Frame[]
  readonly isLast: boolean
}
