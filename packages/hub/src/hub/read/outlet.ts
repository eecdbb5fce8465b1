import type { Account, Entry, EvictionReason, Holder } from '../byte-ledger.ts'
import { type SharedBytes, type Sink, shareBytes, shareLarge, shareText } from '../live/sink.ts'
import type { Totals } from '../observation.ts'

/** The session that an outlet belongs to. */
export interface OutletOwner {
  /**
   * The outlet is about to destroy the sink: the sink threw, its reader read nothing for too long, or others needed the memory.
   */
  onSinkLost(reason: 'failed' | EvictionReason, cause?: unknown): void
}

export interface OutletContext {
  /** Counts the bytes that wait for this session's reader. */
  readonly account: Account
  readonly totals: Totals
}

// Parts as large as this are copied once for all readers that replay them.
const largeBytes = 64 * 1024

/**
 * The way of a session to its sink. Watches the sink while it is full, and counts the bytes that wait in it. A class, because a
 * class takes less memory, like the session itself.
 */
export class Outlet implements Holder {
  /** Whether the sink has yet to drain. */
  full = false
  /** Undefined for most readers: bytes have never waited for them. */
  #entry: Entry | undefined
  #isClosed = false
  readonly #sink: Sink
  readonly #context: OutletContext
  readonly #owner: OutletOwner

  constructor(sink: Sink, context: OutletContext, owner: OutletOwner) {
    this.#sink = sink
    this.#context = context
    this.#owner = owner
  }

  get pending(): number {
    return this.#sink.pending
  }

  /** Writes bytes that several readers share, with the reader's own `text` in front of them. Returns false when the sink is full. */
  push(bytes: SharedBytes, text = ''): boolean {
    if (this.#isClosed) return true
    this.#context.totals.bytes += bytes.plain.length + (text === '' ? 0 : Buffer.byteLength(text))
    try {
      if (text === '' ? this.#sink.write(bytes) : this.#writeWithText(text, bytes)) return !this.full
    } catch (cause) {
      this.#fail(cause)
      return true
    }
    this.full = true
    this.#open().watch()
    return false
  }

  #open(): Entry {
    this.#entry ??= this.#context.account.open(this)
    return this.#entry
  }

  #writeWithText(text: string, bytes: SharedBytes): boolean {
    if (this.#sink.writeWithText) return this.#sink.writeWithText(text, bytes)
    this.#sink.write(shareText(text))
    return this.#sink.write(bytes)
  }

  /** Writes text that is for this reader alone. */
  write(text: string): void {
    // An empty chunk would end the answer.
    if (text !== '') this.#writeOwn(shareText(text))
  }

  /** Writes a replay that this reader shares with others, with its own `text` in front. */
  writeShared(text: string, bytes: SharedBytes): void {
    this.#writeOwn(bytes, text)
  }

  /** Writes small parts together and each large part alone. */
  writeAll(parts: readonly Uint8Array[]): void {
    let small: Uint8Array[] = []
    for (const part of parts) {
      if (part.length < largeBytes) {
        small.push(part)
        continue
      }
      if (small.length > 0) this.#writeOwn(shareBytes(small))
      small = []
      this.#writeOwn(shareLarge(part))
    }
    if (small.length > 0) this.#writeOwn(shareBytes(small))
  }

  /** The text is short beside what a stream may have in wait, so its characters are counted, not its bytes. */
  #writeOwn(bytes: SharedBytes, text = ''): void {
    this.push(bytes, text)
    // The system has taken the bytes of a healthy reader before the write returns.
    if (!this.#isClosed && this.pending > 0) this.#open().add(bytes.plain.length + text.length)
  }

  caughtUp(): void {
    this.#sink.caughtUp?.()
  }

  drained(): void {
    this.full = false
    this.#entry?.drained()
  }

  /** Ends the stream after the bytes that were written. Returns false when the sink failed. */
  end(): boolean {
    try {
      this.#sink.end()
    } catch (cause) {
      this.#fail(cause)
      return false
    }
    this.#isClosed = true
    if (this.pending > 0) this.#open().watch()
    return true
  }

  /** The reader has gone. Nothing waits for it any more. */
  disconnected(): void {
    this.#isClosed = true
    this.#entry?.close()
  }

  destroy(): void {
    this.disconnected()
    this.#sink.destroy()
  }

  /** A sink that throws loses its own reader. The other readers of the same turn are not affected. */
  #fail(cause: unknown): void {
    this.#owner.onSinkLost('failed', cause)
    this.destroy()
  }

  evict(reason: EvictionReason): void {
    this.#owner.onSinkLost(reason)
    this.destroy()
  }
}
