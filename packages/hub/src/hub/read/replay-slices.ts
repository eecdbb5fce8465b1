import type { Frame } from '../live/frame.ts'

/** The most that one reader gets in one slice while it catches up. */
export const sliceBytes = 64 * 1024
const sliceFrames = 1024

/** Cuts a replay into slices. The last slice may be empty. */
export function* inSlices(frames: Iterable<Frame>): Generator<ReplaySlice> {
  let slice: Frame[] = []
  let bytes = 0
  for (const frame of frames) {
    // Frames are limited as well as bytes: a reader's filter may reject all of a hundred thousand small frames.
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
