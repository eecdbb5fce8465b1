/**
 * A text as bytes that are kept for long, like the frames of the hot window.
 *
 * In Node's own pool, small buffers share pieces of 8 KB with all other buffers of that moment: the head of a request, a key of
 * the log. One buffer keeps its whole piece in memory, so in a busy hub a frame of 100 bytes cost 8 KB. Here a frame shares its
 * piece with other frames only, and they are let go at about the same time.
 */
export function keptBytes(text: string): Buffer {
  // An upper bound: the exact length would cost a walk through the text.
  const most = 3 * text.length
  if (most > pieceBytes / 2) return ownBytes(text)
  if (most > piece.length - taken) {
    piece = Buffer.allocUnsafeSlow(pieceBytes)
    taken = 0
  }
  const start = taken
  taken += piece.write(text, start)
  return piece.subarray(start, taken)
}

const pieceBytes = 16_384
let piece: Buffer = Buffer.allocUnsafeSlow(0)
let taken = 0

function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}
