import { isAfter, isPattern, isSame, type Position } from '@rejoin/protocol'
import type { Environment } from '../environment.ts'
import type { LogEvent, TailBatch } from '../log/contract.ts'
import { type Audiences, createAudiences, type LiveReader } from './audience.ts'
import type { Frame } from './frame.ts'
import { createHotWindow, type HotWindow } from './hot-window.ts'
import type { SharedBytes } from './sink.ts'
import type { Totals } from './totals.ts'

/** A reader on the live side, and how it is sent back to reading from the log. */
export interface Follower extends LiveReader {
  /** The reader has everything up to `position` and is live no more. */
  leaveLive(position: Position): void
}

/**
 * The live side of a hub: takes the log's tail, encodes each event once at most, and at the end of the turn writes it to every
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
  /** Resolves once `head` is at or past `position`, the hub is closed, or nobody waits any more, which the signal says. */
  reached(position: Position, signal?: AbortSignal): Promise<void>
  /**
   * The same for whoever has put something there, and waits only so that the readers here have it when that is answered.
   * Resolves as well when the log falls silent: it has taken it, and may not tell for as long as it is away.
   */
  heard(position: Position): Promise<void>
  /** The log has fallen silent. */
  fallSilent(): void
  /** Lets go of whoever waits for a head that will not come any more. */
  close(): void
  /** Moves the cursors of readers that got nothing for long, so that they do not fall out of the window or rescan it. */
  checkpoint(): void
  /** Writes frames that are not the log's to those who are live: no head moves, and nothing is kept. */
  say(frames: readonly Frame[]): void
  /**
   * Brings one live reader up to `head` and writes it that place, so that it can leave from there. Not to be called from
   * inside a delivery.
   */
  mark(follower: Follower): void
}

export interface LiveOptions {
  readonly start: Position
  readonly hotBytes: number
  readonly environment: Environment
  /** All of them; only those whose channel is heard are sure to be sent. */
  encode(events: readonly LogEvent[], isHeard: (channel: string) => boolean): Frame[]
  encodeCheckpoint(position: Position): SharedBytes
  onInvalidation(channel: string): void
  /** A channel takes nothing more. */
  onEnd(channel: string, position: Position): void
  /** The tail jumped, maybe to another branch: what was read before may never have been. */
  onLostPlace(): void
  readonly totals: Totals
}

export function createLive(options: LiveOptions): Live {
  const { start, environment, encode, encodeCheckpoint, onInvalidation, onEnd, onLostPlace, totals } = options
  const audiences: Audiences<Follower> = createAudiences(totals)
  const hot = createHotWindow(start, options.hotBytes)
  let head = start
  let turn: Frame[] = []
  let delivering = false
  let closed = false
  /** The nearest position first. */
  let waiting: Waiter[] = []
  /** Events since the hub opened, to tell how far behind a quiet reader's id is. */
  let count = 0

  function flush(): void {
    if (turn.length === 0) return
    const frames = turn
    turn = []
    delivering = true
    audiences.deliver(frames, { now: environment.now(), count }, leaveFull)
    delivering = false
  }

  function leaveFull(reader: Follower): void {
    audiences.remove(reader)
    reader.leaveLive(head)
  }

  /** Moves the head to a place that live readers cannot follow to, and sends these back to the log from where they are. */
  function jump(position: Position, readers: () => Follower[]): void {
    flush()
    const before = head
    head = position
    for (const reader of readers()) {
      audiences.remove(reader)
      reader.leaveLive(before)
    }
  }

  /** The tail could not continue where it stood. The log knows what its readers missed. */
  function lostPlace(position: Position): void {
    hot.restart(position)
    onLostPlace()
    jump(position, audiences.readers)
  }

  /** Its readers go back to the log, which tells them. */
  function invalidate({ channel, position }: LogEvent): void {
    hot.invalidate(channel, position)
    onInvalidation(channel)
    jump(position, () => audiences.readersOf(channel))
  }

  /** Its readers may be done; each sees for itself, once it has everything up to here. Those of patterns never are. */
  function end({ channel, position }: LogEvent): void {
    onEnd(channel, position)
    const mayBeDone = ({ subscription }: Follower) => !subscription.channels.some(isPattern)
    jump(position, () => audiences.readersOf(channel).filter(mayBeDone))
  }

  function add(frame: Frame, kind: LogEvent['kind']): void {
    if (turn.length === 0) environment.endOfTurn(flush)
    // One that is not held is for those who are here now; from the hot window it would reach some of the others.
    if (kind === 'event') hot.add(frame)
    turn.push(frame)
    head = frame.position
    count += 1
    totals.events += 1
  }

  function wakeWaiting(): void {
    let due = 0
    while (due < waiting.length && !isAfter(waiting[due]!.position, head)) due += 1
    for (const waiter of waiting.splice(0, due)) waiter.resolve()
  }

  function wait(waiter: Waiter): void {
    // Almost always behind all others: publishes wait in the order of their places.
    let index = waiting.length
    while (index > 0 && isAfter(waiting[index - 1]!.position, waiter.position)) index -= 1
    if (index === waiting.length) waiting.push(waiter)
    else waiting.splice(index, 0, waiter)
  }

  return {
    get head() {
      return head
    },
    hot,
    apply(batch) {
      if (!isSame(batch.after, head)) lostPlace(batch.after)
      const frames = encode(
        batch.events.filter(({ kind }) => kind === 'event' || kind === 'live'),
        audiences.isHeard,
      )
      let added = 0
      for (const event of batch.events) {
        if (event.kind === 'invalidation') invalidate(event)
        else if (event.kind === 'end') end(event)
        else add(frames[added++] as Frame, event.kind)
      }
      if (waiting.length > 0) wakeWaiting()
    },
    join(follower, cursor) {
      if (delivering || !isSame(cursor, head)) return false
      // What waits in this turn is in the hot window already, and this reader has it from there.
      flush()
      audiences.add(follower, { now: environment.now(), count })
      return true
    },
    leave(follower) {
      audiences.remove(follower)
    },
    reached(position, signal) {
      if (closed || !isAfter(position, head)) return Promise.resolve()
      return new Promise((resolve) => {
        const waiter = { position, resolve, isStored: false }
        wait(waiter)
        signal?.addEventListener('abort', () => {
          waiting = waiting.filter((other) => other !== waiter)
          resolve()
        })
      })
    },
    heard(position) {
      if (closed || !isAfter(position, head)) return Promise.resolve()
      return new Promise((resolve) => wait({ position, resolve, isStored: true }))
    },
    fallSilent() {
      for (const { isStored, resolve } of waiting) if (isStored) resolve()
      waiting = waiting.filter(({ isStored }) => !isStored)
    },
    close() {
      closed = true
      for (const waiter of waiting) waiter.resolve()
      waiting = []
    },
    checkpoint() {
      flush()
      delivering = true
      audiences.checkpoint({ now: environment.now(), count }, () => encodeCheckpoint(head), leaveFull)
      delivering = false
    },
    say(frames) {
      environment.endOfTurn(() => {
        flush()
        delivering = true
        audiences.deliver(frames, { now: environment.now(), count }, leaveFull)
        delivering = false
      })
    },
    mark(follower) {
      flush()
      // Only of a reader that is still here is it true that it has everything up to the head.
      if (!audiences.has(follower)) return
      if (!follower.push(encodeCheckpoint(head))) leaveFull(follower)
    },
  }
}

interface Waiter {
  readonly position: Position
  /** What it waits for is in the log. */
  readonly isStored: boolean
  resolve(): void
}
