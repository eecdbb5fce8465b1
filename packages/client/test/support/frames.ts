import { onTestFinished, vi } from 'vitest'

/** What is to run before the next frame, of all tests of the process. While a frame is awaited, no other one is requested. */
const frames: (() => void)[] = []

/** Holds the frames of a page back until `paint` is called, or the test is over. */
export function holdFrames(): HeldFrames {
  vi.stubGlobal('requestAnimationFrame', (frame: () => void) => frames.push(frame))
  paint()
  onTestFinished(paint)
  return {
    get requested() {
      return frames.length
    },
    paint,
  }
}

export interface HeldFrames {
  readonly requested: number
  paint(): void
}

function paint(): void {
  for (const frame of frames.splice(0)) frame()
}
