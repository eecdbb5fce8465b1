/**
 * A text as bytes that are kept for long, like the frames of the hot window.
 *
 * Node's own pool gives small buffers parts of 8 KB that they share with everything else of the moment: the head of a
 * request, a key of the log. One buffer keeps all of the 8 KB, so that in a busy hub a frame of 100 bytes cost 8 KB.
 * Here frames share memory with frames alone, and those go together.
 */
export function keptBytes(text: string): Buffer {
  // What it can be at most, because to know its length is to walk through it.
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
