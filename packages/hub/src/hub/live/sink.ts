/**
 * Where a session writes its bytes: the connection of one reader. Each adapter implements a sink for its transport.
 *
 * The adapter calls `session.drained()` when a sink that was full has emptied, and `session.disconnected()` when the reader has
 * gone.
 */
export interface Sink {
  /**
   * Takes the bytes in any case, and never blocks. Returns false when more bytes wait than the reader's budget allows. Then the
   * session writes nothing until it is told of the drain, and catches up from the log. A sink that always returned true would let
   * one slow reader fill the memory.
   */
  write(bytes: SharedBytes): boolean
  /**
   * Writes text that is for this reader alone, and `bytes` after it, in one write of the transport if possible. Left out, the
   * text becomes bytes, and both are given to `write`. Text, because making a buffer for each of ten thousand readers takes longer
   * than writing their texts.
   */
  writeWithText?(text: string, bytes: SharedBytes): boolean
  /** Bytes that were written and that the reader's side has not taken yet. While this number falls, a slow reader is alive. */
  readonly pending: number
  /** Ends the stream after the bytes that were written. */
  end(): void
  /** Ends the stream at once, and lets go of the bytes that wait: nobody reads them. */
  destroy(): void
  /** Called each time the session joins the live side: everything up to the head has been written. */
  caughtUp?(): void
}

/** The same bytes in two forms: plain, and framed as one HTTP/1.1 chunk. Readers share them, so they must never be changed. */
export interface SharedBytes {
  readonly plain: Uint8Array
  readonly chunked: Uint8Array
}

/** Joins parts into one buffer. The plain bytes are a view of the chunk, so that both forms cost one copy. */
export function shareBytes(parts: readonly Uint8Array[]): SharedBytes {
  let length = 0
  for (const part of parts) length += part.length
  const header = `${length.toString(16)}\r\n`
  // Not from Node's pool: the bytes of one slow reader would keep a whole piece of the pool in memory.
  const chunked = Buffer.allocUnsafeSlow(header.length + length + 2)
  let offset = chunked.write(header, 0, 'latin1')
  const start = offset
  for (const part of parts) {
    chunked.set(part, offset)
    offset += part.length
  }
  chunked.write('\r\n', offset, 'latin1')
  return { plain: chunked.subarray(start, offset), chunked }
}

/** Like `shareBytes`, for text. */
export function shareText(text: string): SharedBytes {
  return shareBytes([Buffer.from(text)])
}

/**
 * Like `shareBytes`, for one large frame: made once for all readers that replay it, and let go with the frame. Copies for some
 * hundred slow readers would be most of the hub's memory.
 */
export function shareLarge(bytes: Uint8Array): SharedBytes {
  let shared = large.get(bytes)
  if (!shared) {
    shared = shareBytes([bytes])
    large.set(bytes, shared)
  }
  return shared
}

const large = new WeakMap<Uint8Array, SharedBytes>()
