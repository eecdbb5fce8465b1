import { isAfter, isSame, type Position } from '@rejoin/protocol'
import type { Environment } from '../environment.ts'
import type { LogEvent, TailBatch } from '../log/contract.ts'
import { type Audiences, createAudiences, type LiveReader } from './audience.ts'
import type { Frame } from './frame.ts'
import { createHotWindow, type HotWindow } from './hot-window.ts'

/** A reader on the live side, and how it is sent back to reading from the log. */
export interface Follower extends LiveReader {
  /** The reader has everything up to `position` and is live no more. */
  leaveLive(position: Position): void
}

/**
 * The live side of a hub: takes the log's tail, encodes each event once, and at the end of the turn writes it to every
 * reader that is up to date.
 */
export interface Live {
  /** The newest position the tail has handed over. */
  readonly head: Position
  readonly hot: HotWindow
  apply(batch: TailBatch): void
  /**
   * Brings every live reader up to `head` and adds this one, which must be there already. In one synchronous step: an
   * await in between would let an event slip in that the reader has neither read nor is pushed.
   *
   * Returns false, and does nothing, when called from inside a delivery; try again at the end of the turn.
   */
  join(follower: Follower, cursor: Position): boolean
  leave(follower: Follower): void
  /** Resolves once `head` is at or past `position`. */
  reached(position: Position): Promise<void>
}

export interface LiveOptions {
  readonly start: Position
  readonly hotBytes: number
  readonly environment: Environment
  encode(event: LogEvent): Frame
}

export function createLive({ start, hotBytes, environment, encode }: LiveOptions): Live {
  const audiences: Audiences<Follower> = createAudiences()
  const hot = createHotWindow(start, hotBytes)
  let head = start
  let turn: Frame[] = []
  let delivering = false
  let waiting: { position: Position; resolve: () => void }[] = []

  function flush(): void {
    if (turn.length === 0) return
    const frames = turn
    turn = []
    delivering = true
    audiences.deliver(frames, (reader) => {
      audiences.remove(reader)
      reader.leaveLive(head)
    })
    delivering = false
  }

  /** The tail could not continue where it stood. What live readers have ends here; the log knows what they missed. */
  function lostPlace(position: Position): void {
    flush()
    const before = head
    hot.restart(position)
    for (const reader of audiences.readers()) {
      audiences.remove(reader)
      reader.leaveLive(before)
    }
  }

  return {
    get head() {
      return head
    },
    hot,
    apply(batch) {
      if (!isSame(batch.after, head)) lostPlace(batch.after)
      if (turn.length === 0 && batch.events.length > 0) environment.endOfTurn(flush)
      for (const event of batch.events) {
        const frame = encode(event)
        hot.add(frame)
        turn.push(frame)
      }
      head = batch.events.at(-1)?.position ?? batch.after
      const due = waiting.filter((waiter) => !isAfter(waiter.position, head))
      if (due.length > 0) {
        waiting = waiting.filter((waiter) => isAfter(waiter.position, head))
        for (const waiter of due) waiter.resolve()
      }
    },
    join(follower, cursor) {
      if (delivering || !isSame(cursor, head)) return false
      // What waits in this turn is in the hot window already, and this reader has it from there.
      flush()
      audiences.add(follower)
      return true
    },
    leave(follower) {
      audiences.remove(follower)
    },
    reached(position) {
      if (!isAfter(position, head)) return Promise.resolve()
      return new Promise((resolve) => {
        waiting.push({ position, resolve })
      })
    },
  }
}
