/**
 * Where a session's bytes go: one connected reader. Written by an adapter, one per transport.
 *
 * The adapter tells the session what happens on its side: `session.drained()` when a sink that was full has emptied, and
 * `session.disconnected()` when the reader has gone.
 */
export interface Sink {
  /**
   * Takes the bytes in any case, without holding up the caller. Returns false when more bytes are now waiting than the
   * reader's budget allows: the session then writes nothing until it is told of the drain, and catches up from the log.
   * A sink that always returned true would let one slow reader fill the memory.
   */
  write(bytes: SharedBytes): boolean
  /** The same for two pieces, in one write where the transport can. Left out, each is given to `write`. */
  writeBoth?(first: SharedBytes, second: SharedBytes): boolean
  /** Bytes that were written and not yet taken by the reader's side. Falling, it shows that a slow reader lives. */
  readonly pending: number
  /** Ends the stream in order, after what was written. */
  end(): void
  /** Ends the stream at once and lets go of what waits: nobody reads it. */
  destroy(): void
  /** Told each time the session joins the live side: everything up to the head has been written. */
  caughtUp?(): void
}

/** The same bytes twice: bare, and framed as one HTTP/1.1 chunk. Shared by all readers they go to, so never changed. */
export interface SharedBytes {
  readonly plain: Uint8Array
  readonly chunked: Uint8Array
}

/** Joins parts into one buffer. The bare bytes are a view of the chunk, so that both forms cost one copy. */
export function shareBytes(parts: readonly Uint8Array[]): SharedBytes {
  let length = 0
  for (const part of parts) length += part.length
  const header = `${length.toString(16)}\r\n`
  // Not from Node's pool: what a slow reader has yet to take would keep a piece of it that others have let go.
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

/**
 * The same for the bytes of one large frame, made once for all readers that replay it and gone with the frame. A copy for each of
 * some hundred slow readers would be most of what the hub has in memory.
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
