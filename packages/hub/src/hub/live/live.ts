import { type Branch, isAfter, isPattern, isSamePoint, type Point, type Position } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import type { LogEvent, TailBatch } from '../../log/contract.ts'
import type { Totals } from '../observation.ts'
import { createHotWindow, type HotWindow } from '../read/hot-window.ts'
import { type Audiences, createAudiences, type LiveReader } from './audience.ts'
import type { Frame } from './frame.ts'
import type { SharedBytes } from './sink.ts'
import { wants } from './subscription.ts'

/** A reader that can move to the live side, and back to reading from the log. */
export interface MovableReader extends LiveReader {
  /** The reader is no longer live. It has everything up to this point. */
  leaveLive(at: Point): void
  /** The reader gets an event that is not in the log. It has to be told so before it gets another event of the log. */
  stray(): void
}

/**
 * The live side of a hub: takes the tail of the log, encodes each event once at most, and writes it to every live reader at the
 * end of the turn.
 */
export interface Live {
  /** The newest point that the tail has brought. */
  readonly head: Point
  readonly hot: HotWindow
  apply(batch: TailBatch): void
  /**
   * Brings every live reader up to `head` and adds this reader, whose cursor must be at `head`. Synchronous: during an `await`,
   * an event could come that the reader has neither read nor is pushed.
   *
   * Returns false, and does nothing, when called during a delivery. Try again at the end of the turn.
   */
  join(reader: MovableReader, cursor: Point): boolean
  leave(reader: MovableReader): void
  /** Whether the live side has come to this point. */
  hasReached(point: Point): boolean
  /**
   * Resolves when the live side has come to this point, or to a later branch. Also resolves when the hub is closed or the signal
   * is aborted.
   */
  reached(point: Point, signal?: AbortSignal): Promise<void>
  /**
   * Like `reached`, for a publisher that wants the readers here to have the event before its request is answered. Also resolves
   * when the log falls silent: the log has the event, but the tail may not bring it until the log is back. Undefined when the
   * live side is there already.
   */
  heard(point: Point): Promise<void> | undefined
  /** The log has fallen silent. */
  fallSilent(): void
  /** Resolves all waits: the head will not move any more. */
  close(): void
  /** Sends an id to readers that got none for long. An older id could leave the window, or make the hub search much of it. */
  checkpoint(): void
  /**
   * Writes frames that are not in the log to live readers. The head does not move, and the frames are not kept. Readers that got
   * such a frame are sent back to reading at the next batch of the tail.
   */
  say(frames: readonly Frame[]): void
  /**
   * Brings one live reader up to `head` and writes the id of that position, so that the reader can leave with it. Not to be
   * called during a delivery.
   */
  mark(reader: MovableReader): void
}

export interface LiveOptions {
  readonly start: Point
  readonly hotBytes: number
  readonly environment: Environment
  /** Encodes events. Events of channels that `isHeard` are sent at once; others perhaps never. */
  encode(events: readonly LogEvent[], branch: Branch, isHeard: (channel: string) => boolean): Frame[]
  encodeCheckpoint(at: Point): SharedBytes
  /** The point of a batch that names no branch. */
  pointAt(position: Position): Point
  /** Whether `branch` opened later than `other`, as far as the log tells. */
  isLater(branch: Branch, other: Branch): boolean
  onEvent(channel: string): void
  onInvalidation(channel: string): void
  onEnd(channel: string, position: Position): void
  /** The tail jumped, maybe to another branch. Events that were read before may be lost. */
  onLostPosition(): void
  readonly totals: Totals
}

export function createLive(options: LiveOptions): Live {
  const { start, environment, encode, encodeCheckpoint, pointAt, isLater, totals } = options
  const { onEvent, onInvalidation, onEnd, onLostPosition } = options
  const audiences: Audiences<MovableReader> = createAudiences(totals)
  const hot = createHotWindow(start.position, options.hotBytes)
  let head = start
  let turn: Frame[] = []
  let delivering = false
  let closed = false
  /** Wait for points of this branch, the nearest first. */
  let waiting: Waiter[] = []
  /** Wait for branches that the tail has yet to bring. */
  let waitingForBranch: Waiter[] = []
  /** Live readers that got an event that is not in the log. */
  const strays = new Set<MovableReader>()
  /** Events since the hub opened. Tells how far behind the id of a quiet reader is. */
  let count = 0

  function flush(): void {
    if (turn.length === 0) return
    const frames = turn
    turn = []
    delivering = true
    audiences.deliver(frames, { now: environment.now(), count }, leaveFull)
    delivering = false
  }

  function leaveFull(reader: MovableReader): void {
    audiences.remove(reader)
    strays.delete(reader)
    reader.leaveLive(head)
  }

  /**
   * Moves the head to a point that `readers` cannot follow to, and sends these readers back to reading from where they are.
   */
  function jump(to: Point, readers: () => MovableReader[]): void {
    flush()
    const before = head
    head = to
    for (const reader of readers()) {
      audiences.remove(reader)
      reader.leaveLive(before)
    }
  }

  /**
   * The log is heard again. Its events must not follow events that are not in the log, so the strays get nothing of this batch.
   * They are sent back to reading after it: a batch that invalidates their channels is then announced to them once, not twice.
   */
  function withoutStrays(work: () => void): void {
    flush()
    const [before, sent] = [head, [...strays]]
    strays.clear()
    for (const reader of sent) audiences.remove(reader)
    work()
    for (const reader of sent) reader.leaveLive(before)
  }

  function take(batch: TailBatch): void {
    const from = batch.branch ? { branch: batch.branch, position: batch.after } : pointAt(batch.after)
    if (!isSamePoint(from, head)) lostPosition(from)
    const frames = encode(
      batch.events.filter(({ kind }) => kind === 'event' || kind === 'live'),
      head.branch,
      audiences.isHeard,
    )
    let added = 0
    for (const event of batch.events) {
      if (event.kind === 'invalidation') invalidate(event)
      else if (event.kind === 'end') end(event)
      else {
        onEvent(event.channel)
        add(frames[added++] as Frame, event.kind)
      }
    }
    if (waiting.length > 0) wakeWaiting()
  }

  /** The tail could not continue where it stood. Readers go back to the log, which knows what they missed. */
  function lostPosition(from: Point): void {
    hot.restart(from.position)
    onLostPosition()
    jump(from, audiences.readers)
    const all = [...waiting, ...waitingForBranch]
    waiting = []
    waitingForBranch = []
    for (const waiter of all) wait(waiter)
  }

  /** The readers of the channel go back to the log. Their next read finds the gap. */
  function invalidate({ channel, position }: LogEvent): void {
    hot.invalidate(channel, position)
    onInvalidation(channel)
    jump({ branch: head.branch, position }, () => audiences.readersOf(channel))
  }

  /** Readers of the channel may be finished. Each session decides when it has everything. Readers of patterns never finish. */
  function end({ channel, position }: LogEvent): void {
    onEnd(channel, position)
    const mayBeDone = ({ subscription }: MovableReader) => !subscription.selectors.some(isPattern)
    jump({ branch: head.branch, position }, () => audiences.readersOf(channel).filter(mayBeDone))
  }

  function add(frame: Frame, kind: LogEvent['kind']): void {
    if (turn.length === 0) environment.endOfTurn(flush)
    // A `live` event is for readers that are here now. The hot window would also give it to readers that come later.
    if (kind === 'event') hot.add(frame)
    turn.push(frame)
    head = { branch: head.branch, position: frame.position }
    count += 1
    totals.events += 1
  }

  function wakeWaiting(): void {
    let due = 0
    while (due < waiting.length && !isAfter(waiting[due]!.point.position, head.position)) due += 1
    for (const waiter of waiting.splice(0, due)) waiter.resolve()
  }

  function wait(waiter: Waiter): void {
    const { branch, position } = waiter.point
    if (branch.epoch !== head.branch.epoch) {
      // A point of an earlier branch is behind the head, or lost. The session that waits judges its point again.
      if (isLater(branch, head.branch)) waitingForBranch.push(waiter)
      else waiter.resolve()
      return
    }
    if (hasReached(waiter.point)) {
      waiter.resolve()
      return
    }
    // Almost always the last: publishes wait in the order of their positions.
    let index = waiting.length
    while (index > 0 && isAfter(waiting[index - 1]!.point.position, position)) index -= 1
    if (index === waiting.length) waiting.push(waiter)
    else waiting.splice(index, 0, waiter)
  }

  function hasReached({ branch, position }: Point): boolean {
    return closed || (branch.epoch === head.branch.epoch && !isAfter(position, head.position))
  }

  return {
    get head() {
      return head
    },
    hot,
    apply(batch) {
      if (strays.size > 0) withoutStrays(() => take(batch))
      else take(batch)
    },
    join(reader, cursor) {
      if (delivering || !isSamePoint(cursor, head)) return false
      // The frames of this turn are in the hot window, and this reader has them from there.
      flush()
      audiences.add(reader, { now: environment.now(), count })
      return true
    },
    leave(reader) {
      audiences.remove(reader)
      strays.delete(reader)
    },
    hasReached,
    reached(point, signal) {
      if (hasReached(point)) return Promise.resolve()
      return new Promise((resolve) => {
        const waiter = { point, resolve, isStored: false }
        wait(waiter)
        signal?.addEventListener('abort', () => {
          waiting = waiting.filter((other) => other !== waiter)
          waitingForBranch = waitingForBranch.filter((other) => other !== waiter)
          resolve()
        })
      })
    },
    heard(point) {
      if (hasReached(point)) return undefined
      return new Promise((resolve) => wait({ point, resolve, isStored: true }))
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
      audiences.checkpoint({ now: environment.now(), count }, () => encodeCheckpoint(head), leaveFull)
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
    mark(reader) {
      flush()
      // Only a reader that is still live has everything up to the head.
      if (!audiences.has(reader)) return
      if (!reader.push(encodeCheckpoint(head))) leaveFull(reader)
    },
  }
}

interface Waiter {
  readonly point: Point
  /** Whether the log has the entry at this position. */
  readonly isStored: boolean
  resolve(): void
}
