import { marker, nowMicros, stampDigits } from '../traffic/event.ts'

/** Counts the events in one connection's bytes, however they were cut. */
export interface FrameCount {
  events: number
  bytes: number
  /** Bytes at the start of the next read in which no marker can stand. */
  skip: number
  /** Called with the age of each event; left out where only their number matters. */
  readonly onAge: ((micros: number) => void) | undefined
}

/** What all connections to one server have in common. */
export interface Stride {
  /** Length of a frame, 0 until one was seen. All events are equally long, so no two markers are closer than this. */
  frameBytes: number
}

/**
 * Jumps from marker to marker: what lies between two is a whole frame and at most the head of an HTTP chunk. Looking at
 * every byte would make this process the slowest part of the bench.
 */
export function countFrames(count: FrameCount, stride: Stride, bytes: Uint8Array, length: number): void {
  count.bytes += length
  let at = count.skip
  while (at < length) {
    if (bytes[at] !== marker) {
      at += 1
      continue
    }
    count.events += 1
    if (count.onAge) tellAge(count.onAge, bytes, at, length)
    if (stride.frameBytes === 0) stride.frameBytes = frameAround(at, bytes, length)
    at += Math.max(1, stride.frameBytes)
  }
  count.skip = at - length
}

/** A stamp that is cut by the end of the read is left out: one sample fewer, none wrong. */
function tellAge(onAge: (micros: number) => void, bytes: Uint8Array, markerAt: number, length: number): void {
  const end = markerAt + 1 + stampDigits
  if (end > length) return
  let stamp = 0
  for (let at = markerAt + 1; at < end; at += 1) stamp = stamp * 10 + (bytes[at]! - zero)
  onAge(nowMicros() - stamp)
}

const zero = '0'.charCodeAt(0)

/** The length of the frame that holds this marker, 0 when it is not whole. */
function frameAround(markerAt: number, bytes: Uint8Array, length: number): number {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, length)
  const end = text.indexOf('\n\n', markerAt)
  const start = Math.max(text.lastIndexOf('\n\n', markerAt), text.lastIndexOf('\r\n', markerAt))
  return start === -1 || end === -1 ? 0 : end - start
}
