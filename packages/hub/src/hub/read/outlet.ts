import { type SharedBytes, type Sink, shareBytes, shareLarge } from '../live/sink.ts'
import type { Queued, QueuedStream } from '../readers/queued.ts'
import type { Stalled, StallWatch } from '../readers/stall.ts'
import type { Totals } from '../totals.ts'

/** The session that an outlet belongs to. */
export interface OutletOwner {
  /**
   * The outlet is about to destroy the sink: the sink threw, its reader read nothing for too long, or others needed the memory.
   */
  onSinkLost(reason: 'failed' | 'stalled' | 'overloaded', cause?: unknown): void
}

export interface OutletContext {
  readonly stalls: StallWatch
  readonly queued: Queued
  readonly totals: Totals
}

// Parts as large as this are copied once for all readers that replay them.
const largeBytes = 64 * 1024

/**
 * The way of a session to its sink. Watches the sink while it is full, and counts the bytes that wait in it. A class, because a
 * class takes less memory, like the session itself.
 */
export class Outlet implements Stalled, QueuedStream {
  /** Whether the sink has yet to drain. */
  full = false
  queued = 0
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

  /** Writes bytes that several readers share, with `before` in front of them. Returns false when the sink is full. */
  push(bytes: SharedBytes, before?: SharedBytes): boolean {
    if (this.#isClosed) return true
    this.#context.totals.bytes += bytes.plain.length + (before?.plain.length ?? 0)
    try {
      if (before ? this.#writeBoth(before, bytes) : this.#sink.write(bytes)) return !this.full
    } catch (cause) {
      this.#fail(cause)
      return true
    }
    this.full = true
    this.#context.stalls.watch(this)
    return false
  }

  #writeBoth(first: SharedBytes, second: SharedBytes): boolean {
    if (this.#sink.writeBoth) return this.#sink.writeBoth(first, second)
    this.#sink.write(first)
    return this.#sink.write(second)
  }

  /** Writes bytes that are for this reader alone. */
  write(part: Uint8Array): void {
    this.#writeOwn(shareBytes([part]))
  }

  /** Writes small parts together and each large part alone. Then writes `last`, which this reader shares with others. */
  writeAll(parts: readonly Uint8Array[], last?: SharedBytes): void {
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
    const own = small.length > 0 ? shareBytes(small) : undefined
    if (last) this.#writeOwn(last, own)
    else if (own) this.#writeOwn(own)
  }

  #writeOwn(bytes: SharedBytes, before?: SharedBytes): void {
    this.push(bytes, before)
    if (!this.#isClosed) this.#context.queued.add(this, bytes.plain.length + (before?.plain.length ?? 0))
  }

  caughtUp(): void {
    this.#sink.caughtUp?.()
  }

  drained(): void {
    this.full = false
    this.#context.stalls.unwatch(this)
    this.#context.queued.settle(this)
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
    if (this.#sink.pending > 0) this.#context.stalls.watch(this)
    return true
  }

  /** The reader has gone. Nothing waits for it any more. */
  disconnected(): void {
    this.#isClosed = true
    this.#context.stalls.unwatch(this)
    this.#context.queued.remove(this)
  }

  destroy(): void {
    this.#isClosed = true
    this.#context.queued.remove(this)
    this.#sink.destroy()
  }

  /** A sink that throws loses its own reader. The other readers of the same turn are not affected. */
  #fail(cause: unknown): void {
    this.#owner.onSinkLost('failed', cause)
    this.destroy()
  }

  giveUp(): void {
    this.#owner.onSinkLost('stalled')
    this.destroy()
  }

  makeRoom(): void {
    this.#owner.onSinkLost('overloaded')
    this.destroy()
  }
}
