import { RejoinError } from '@rejoin/protocol'
import type { SharedBytes, Sink } from '../live/sink.ts'

/** A sink that is read from at the reader's pace: what a session wrote waits here, within a budget, until it is asked for. */
export interface PullSink<Item> extends Sink {
  /** Hands over one item, now or when there is one. Asked by several, it serves them in order. */
  ask(taker: Taker<Item>): void
  /** The reader has gone. Drops the frames that wait, and ends the loop that waits for a frame. */
  stop(): void
}

/** Called by one of its methods, once. Not a promise: a `Response` would pay for three more of them with every write. */
export interface Taker<Item> {
  take(item: Item): void
  /** There is nothing more. */
  end(): void
  /** The session has given up on the reader. */
  fail(error: RejoinError): void
}

export interface PullSinkOptions<Item> {
  /** Bytes that may wait before the reader counts as slow. */
  readonly budgetBytes: number
  /** What one write holds for the reader; nothing, for a heartbeat. */
  itemsOf(bytes: SharedBytes): readonly Item[]
  /** A full sink has been emptied, or an ended one. */
  onDrain(): void
  /** The session has ended the stream at once. Told also when nobody asks, and so nobody would hear of it. */
  onDestroy(error: RejoinError): void
}

export function createPullSink<Item>(options: PullSinkOptions<Item>): PullSink<Item> {
  const { budgetBytes, itemsOf, onDrain, onDestroy } = options
  // One of the two is always empty.
  let waiting: { readonly item: Item; readonly bytes: number }[] = []
  let asking: Taker<Item>[] = []
  let pending = 0
  let full = false
  let ended = false
  let failure: RejoinError | undefined

  function end(): void {
    ended = true
    const takers = asking
    asking = []
    for (const taker of takers) taker.end()
  }

  function letGo(): void {
    waiting = []
    pending = 0
  }

  return {
    write(written) {
      const items = itemsOf(written)
      const bytes = written.plain.length / items.length
      for (const item of items) {
        const taker = asking.shift()
        if (taker) taker.take(item)
        else {
          waiting.push({ item, bytes })
          pending += bytes
        }
      }
      if (pending > budgetBytes) full = true
      return !full
    },
    get pending() {
      return Math.round(pending)
    },
    end,
    destroy() {
      if (ended && waiting.length === 0) return
      letGo()
      failure = givenUp()
      const takers = asking
      asking = []
      for (const taker of takers) taker.fail(failure)
      onDestroy(failure)
    },
    ask(taker) {
      const next = waiting.shift()
      if (next) {
        pending -= next.bytes
        taker.take(next.item)
        if (waiting.length > 0 || !(full || ended)) return
        full = false
        onDrain()
      } else if (failure) taker.fail(failure)
      else if (ended) taker.end()
      else asking.push(taker)
    },
    stop() {
      letGo()
      end()
    },
  }
}

function givenUp(): RejoinError {
  return new RejoinError(
    'The hub has given up on this stream: nothing was read from it for too long. Open another with the last id.',
    { code: 'closed', retryable: true },
  )
}
