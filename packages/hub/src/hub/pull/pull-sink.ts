import { RejoinError } from '@rejoin/protocol'
import type { SharedBytes, Sink } from '../live/sink.ts'

/** A sink that its reader pulls from. The bytes of the session wait here, within a budget, until the reader asks. */
export interface PullSink<Item> extends Sink {
  /** Gives the taker one item, now or when there is one. Takers are served in order. */
  ask(taker: Taker<Item>): void
  /** The reader has gone. Drops the items that wait, and ends the takers that wait. */
  stop(): void
}

/** One of its methods is called, once. It is not a promise, because a `Response` would need three more promises per write. */
export interface Taker<Item> {
  take(item: Item): void
  /** The stream has ended. */
  end(): void
  /** The session has given up on the reader. */
  fail(error: RejoinError): void
}

export interface PullSinkOptions<Item> {
  /** Bytes that may wait before the reader counts as slow. */
  readonly budgetBytes: number
  /** The items in one write of the session; none for a heartbeat. */
  itemsOf(bytes: SharedBytes): readonly Item[]
  /** The sink was full or has ended, and the reader has taken everything. */
  onDrain(): void
  /** The session has ended the stream at once. Called even when no taker waits, because then no taker gets the error. */
  onDestroy(error: RejoinError): void
}

export function createPullSink<Item>(options: PullSinkOptions<Item>): PullSink<Item> {
  const { budgetBytes, itemsOf, onDrain, onDestroy } = options
  // `waiting` or `asking` is always empty.
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
