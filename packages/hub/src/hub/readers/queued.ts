import type { Environment } from '../../environment.ts'

/**
 * Bytes that the hub has copied for single streams, and that their readers have not taken yet. Each stream has a budget of its
 * own. Without a limit on all streams together, some thousands of readers that stop reading would fill the memory. Bytes that are
 * pushed live do not count, because readers share them.
 */
export interface Queued {
  readonly bytes: number
  /** These bytes were written for this stream alone. */
  add(stream: QueuedStream, bytes: number): void
  /** Bytes of this stream may have been taken. */
  settle(stream: QueuedStream): void
  /** The stream is gone, with the bytes that waited for its reader. */
  remove(stream: QueuedStream): void
  /** Whether a stream may read on from the log now. */
  hasRoom(): boolean
  /** Resolves when there may be room. */
  room(): Promise<void>
  stop(): void
}

export interface QueuedStream {
  /** Bytes that wait for its reader now. */
  readonly pending: number
  /** How many of these bytes count. `Queued` sets it. It is a field and no map, because most streams never have any. */
  queued: number
  /** Ends the stream, because others need the room. */
  makeRoom(): void
}

export interface QueuedOptions {
  readonly maxBytes: number
  readonly environment: Environment
}

const checkEveryMs = 250
// Checks without room before a stream may be ended: its reader has a second to read.
const patience = 4
// So many streams are ended that an eighth of the room is free. Otherwise the next check would find it full again.
const freedShare = 8

export function createQueued({ maxBytes, environment }: QueuedOptions): Queued {
  let bytes = 0
  const waiting = new Map<QueuedStream, Standing>()
  let forRoom: (() => void)[] = []
  let cancel: (() => void) | undefined
  let counted = false

  function count(stream: QueuedStream, queued: number): void {
    const taken = stream.queued - queued
    bytes -= taken
    stream.queued = queued
    const standing = waiting.get(stream)
    if (queued === 0) waiting.delete(stream)
    else if (!standing) waiting.set(stream, { taken: 0, looks: 0 })
    else if (taken > 0) standing.taken += taken
    if (waiting.size > 0) cancel ??= environment.after(checkEveryMs, checkQueued)
  }

  function settle(stream: QueuedStream): void {
    if (stream.queued > 0) count(stream, Math.min(stream.queued, stream.pending))
  }

  function settleAll(): void {
    for (const stream of waiting.keys()) settle(stream)
  }

  function checkQueued(): void {
    cancel = undefined
    settleAll()
    const isFull = bytes >= maxBytes
    for (const standing of waiting.values()) {
      standing.looks = isFull ? standing.looks + 1 : 0
      if (!isFull) standing.taken = 0
    }
    if (isFull) endSlowest()
    if (bytes < maxBytes) wakeAll()
    if (waiting.size > 0) cancel ??= environment.after(checkEveryMs, checkQueued)
  }

  /** Ends the streams whose readers took the least while there was no room; among equals, the largest first. */
  function endSlowest(): void {
    const slowest = [...waiting]
      .filter(([, { looks }]) => looks >= patience)
      .sort(([one, a], [other, b]) => a.taken - b.taken || other.queued - one.queued)
    for (const [stream] of slowest) {
      if (bytes <= maxBytes - maxBytes / freedShare) return
      remove(stream)
      stream.makeRoom()
    }
  }

  function wakeAll(): void {
    const woken = forRoom
    forRoom = []
    for (const wake of woken) wake()
  }

  function remove(stream: QueuedStream): void {
    if (stream.queued > 0) count(stream, 0)
    if (bytes < maxBytes && forRoom.length > 0) wakeAll()
  }

  return {
    get bytes() {
      return bytes
    },
    add(stream, more) {
      const { pending } = stream
      // The system has taken the bytes of a healthy reader before the write returns.
      if (pending > 0) count(stream, Math.min(stream.queued + more, pending))
    },
    settle,
    remove,
    hasRoom() {
      if (bytes < maxBytes) return true
      if (counted) return false
      // A stream that is not full does not tell when its bytes are taken. So all are counted again, once per turn.
      counted = true
      environment.endOfTurn(() => {
        counted = false
      })
      settleAll()
      return bytes < maxBytes
    },
    room: () => new Promise((resolve) => void forRoom.push(resolve)),
    stop: () => cancel?.(),
  }
}

interface Standing {
  /** Bytes that the reader took while there was no room. */
  taken: number
  /** How many checks in a row found bytes of this stream and no room. */
  looks: number
}
