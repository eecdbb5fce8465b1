import { type Branch, isAfter, isPattern, isSame, type Position } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import type { LogEvent, TailBatch } from '../../log/contract.ts'
import { createHotWindow, type HotWindow } from '../read/hot-window.ts'
import type { Totals } from '../totals.ts'
import { type Audiences, createAudiences, type LiveReader } from './audience.ts'
import type { Frame } from './frame.ts'
import type { SharedBytes } from './sink.ts'
import { wants } from './subscription.ts'

/** A reader on the live side, and how it is sent back to reading from the log. */
export interface Follower extends LiveReader {
  /** The reader has everything up to `position` on `branch` and is live no more. */
  leaveLive(position: Position, branch: Branch): void
  /** The reader is handed something that is not in the log. It has to be told before it gets anything else of the log. */
  stray(): void
}

/**
 * The live side of a hub: takes the log's tail, encodes each event once at most, and at the end of the turn writes it to every
 * reader that is up to date.
 */
export interface Live {
  /** The newest position the tail has handed over. */
  readonly head: Position
  /** The branch that the head lies on. Positions of two branches can overlap in time: the head alone is no proof of anything. */
  readonly branch: Branch
  readonly hot: HotWindow
  apply(batch: TailBatch): void
  /**
   * Brings every live reader up to `head` and adds this one, which must be there already. In one synchronous step: an
   * await in between would let an event slip in that the reader has neither read nor is pushed.
   *
   * Returns false, and does nothing, when called from inside a delivery; try again at the end of the turn.
   */
  join(follower: Follower, cursor: Position, branch: Branch): boolean
  leave(follower: Follower): void
  /** Whether the live side has come to `position` on `branch`. */
  hasReached(position: Position, branch: Branch): boolean
  /**
   * Resolves once the live side has come to `position` on `branch`, or to a later branch. Resolves as well when the hub is
   * closed or the signal is aborted.
   */
  reached(position: Position, branch: Branch, signal?: AbortSignal): Promise<void>
  /**
   * Like `reached`, for a publisher that wants the readers here to have the event before its request is answered. Resolves as
   * well when the log falls silent: the log has the event, and may not say so for as long as it is away.
   */
  heard(position: Position, branch: Branch): Promise<void>
  /** The log has fallen silent. */
  fallSilent(): void
  /** Resolves all waits: the head will not move any more. */
  close(): void
  /** Moves the cursors of readers that got nothing for long, so that they do not fall out of the window or rescan it. */
  checkpoint(): void
  /**
   * Writes frames that are not the log's to those who are live: no head moves, and nothing is kept. Readers that got one are
   * sent back to reading as soon as the log says anything.
   */
  say(frames: readonly Frame[]): void
  /**
   * Brings one live reader up to `head` and writes it that position, so that it can leave from there. Not to be called from
   * inside a delivery.
   */
  mark(follower: Follower): void
}

export interface LiveOptions {
  readonly start: Position
  readonly startBranch: Branch
  readonly hotBytes: number
  readonly environment: Environment
  /** Encodes all events. Only events whose channel is heard are sure to be sent. */
  encode(events: readonly LogEvent[], branch: Branch, isHeard: (channel: string) => boolean): Frame[]
  encodeCheckpoint(position: Position, branch: Branch): SharedBytes
  /** The branch of a batch that does not name it. */
  branchOf(position: Position): Branch
  /** Whether one branch opened later than the other, as far as the log tells. */
  isLater(branch: Branch, other: Branch): boolean
  onInvalidation(channel: string): void
  /** A channel takes nothing more. */
  onEnd(channel: string, position: Position): void
  /** The tail jumped, maybe to another branch: what was read before may never have been. */
  onLostPosition(): void
  readonly totals: Totals
}

export function createLive(options: LiveOptions): Live {
  const { start, environment, encode, encodeCheckpoint, onInvalidation, onEnd, onLostPosition, totals } = options
  const { branchOf, isLater } = options
  const audiences: Audiences<Follower> = createAudiences(totals)
  const hot = createHotWindow(start, options.hotBytes)
  let head = start
  let branch = options.startBranch
  let turn: Frame[] = []
  let delivering = false
  let closed = false
  /** For positions of this branch, the nearest first. */
  let waiting: Waiter[] = []
  /** For positions of branches that the tail has yet to bring. */
  let waitingForBranch: Waiter[] = []
  /** Live readers that were handed something that is not in the log. */
  const strays = new Set<Follower>()
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
    strays.delete(reader)
    reader.leaveLive(head, branch)
  }

  /** Moves the head to a position that live readers cannot follow to, and sends these back to the log from where they are. */
  function jump(position: Position, on: Branch, readers: () => Follower[]): void {
    flush()
    const before = head
    const branchBefore = branch
    head = position
    branch = on
    for (const reader of readers()) {
      audiences.remove(reader)
      reader.leaveLive(before, branchBefore)
    }
  }

  /**
   * The log is heard again. What it says must not follow what it knows nothing of: these readers get nothing of the batch, and
   * are sent back to reading behind it, so that a batch which declares their channels void is told to them only once.
   */
  function withoutStrays(work: () => void): void {
    flush()
    const [position, on, sent] = [head, branch, [...strays]]
    strays.clear()
    for (const reader of sent) audiences.remove(reader)
    work()
    for (const reader of sent) reader.leaveLive(position, on)
  }

  function take(batch: TailBatch): void {
    const on = batch.branch ?? branchOf(batch.after)
    if (!isSame(batch.after, head) || on.epoch !== branch.epoch) lostPosition(batch.after, on)
    const frames = encode(
      batch.events.filter(({ kind }) => kind === 'event' || kind === 'live'),
      branch,
      audiences.isHeard,
    )
    let added = 0
    for (const event of batch.events) {
      if (event.kind === 'invalidation') invalidate(event)
      else if (event.kind === 'end') end(event)
      else add(frames[added++] as Frame, event.kind)
    }
    if (waiting.length > 0) wakeWaiting()
  }

  /** The tail could not continue where it stood. The log knows what its readers missed. */
  function lostPosition(position: Position, on: Branch): void {
    hot.restart(position)
    onLostPosition()
    jump(position, on, audiences.readers)
    const all = [...waiting, ...waitingForBranch]
    waiting = []
    waitingForBranch = []
    for (const waiter of all) wait(waiter)
  }

  /** Its readers go back to the log, which tells them. */
  function invalidate({ channel, position }: LogEvent): void {
    hot.invalidate(channel, position)
    onInvalidation(channel)
    jump(position, branch, () => audiences.readersOf(channel))
  }

  /** Readers of the channel may be finished: each session decides when it has everything. Readers of patterns never are. */
  function end({ channel, position }: LogEvent): void {
    onEnd(channel, position)
    const mayBeDone = ({ subscription }: Follower) => !subscription.channels.some(isPattern)
    jump(position, branch, () => audiences.readersOf(channel).filter(mayBeDone))
  }

  function add(frame: Frame, kind: LogEvent['kind']): void {
    if (turn.length === 0) environment.endOfTurn(flush)
    // A `live` event is for readers that are here now. From the hot window it would also reach readers that come later.
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
    if (waiter.branch.epoch !== branch.epoch) {
      // A position of an earlier branch is behind us, or lost. The session that waits for it judges its position again.
      if (isLater(waiter.branch, branch)) waitingForBranch.push(waiter)
      else waiter.resolve()
      return
    }
    if (isThere(waiter.position, waiter.branch)) {
      waiter.resolve()
      return
    }
    // Almost always behind all others: publishes wait in the order of their positions.
    let index = waiting.length
    while (index > 0 && isAfter(waiting[index - 1]!.position, waiter.position)) index -= 1
    if (index === waiting.length) waiting.push(waiter)
    else waiting.splice(index, 0, waiter)
  }

  function isThere(position: Position, on: Branch): boolean {
    return closed || (on.epoch === branch.epoch && !isAfter(position, head))
  }

  return {
    get head() {
      return head
    },
    get branch() {
      return branch
    },
    hot,
    apply(batch) {
      if (strays.size > 0) withoutStrays(() => take(batch))
      else take(batch)
    },
    join(follower, cursor, on) {
      if (delivering || !isSame(cursor, head) || on.epoch !== branch.epoch) return false
      // What waits in this turn is in the hot window already, and this reader has it from there.
      flush()
      audiences.add(follower, { now: environment.now(), count })
      return true
    },
    leave(follower) {
      audiences.remove(follower)
      strays.delete(follower)
    },
    hasReached: isThere,
    reached(position, on, signal) {
      if (isThere(position, on)) return Promise.resolve()
      return new Promise((resolve) => {
        const waiter = { position, branch: on, resolve, isStored: false }
        wait(waiter)
        signal?.addEventListener('abort', () => {
          waiting = waiting.filter((other) => other !== waiter)
          waitingForBranch = waitingForBranch.filter((other) => other !== waiter)
          resolve()
        })
      })
    },
    heard(position, on) {
      if (isThere(position, on)) return Promise.resolve()
      return new Promise((resolve) => wait({ position, branch: on, resolve, isStored: true }))
    },
    fallSilent() {
      for (const { isStored, resolve } of [...waiting, ...waitingForBranch]) if (isStored) resolve()
      waiting = waiting.filter(({ isStored }) => !isStored)
      waitingForBranch = waitingForBranch.filter(({ isStored }) => !isStored)
    },
    close() {
      closed = true
      for (const waiter of [...waiting, ...waitingForBranch]) waiter.resolve()
      waiting = []
      waitingForBranch = []
    },
    checkpoint() {
      flush()
      delivering = true
      audiences.checkpoint({ now: environment.now(), count }, () => encodeCheckpoint(head, branch), leaveFull)
      delivering = false
    },
    say(frames) {
      environment.endOfTurn(() => {
        flush()
        for (const frame of frames) {
          for (const reader of audiences.readersOf(frame.channel)) {
            if (!wants(reader.subscription, frame)) continue
            reader.stray()
            strays.add(reader)
          }
        }
        delivering = true
        audiences.deliver(frames, { now: environment.now(), count }, leaveFull)
        delivering = false
      })
    },
    mark(follower) {
      flush()
      // Only of a reader that is still here is it true that it has everything up to the head.
      if (!audiences.has(follower)) return
      if (!follower.push(encodeCheckpoint(head, branch))) leaveFull(follower)
    },
  }
}

interface Waiter {
  readonly position: Position
  readonly branch: Branch
  /** The entry that it waits for is in the log. */
  readonly isStored: boolean
  resolve(): void
}
