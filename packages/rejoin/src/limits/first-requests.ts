import type { Socket } from 'node:net'

/**
 * Bounds the new connections whose first request is read in one turn of the event loop. When thousands of readers return together,
 * Node would read all of their requests in one turn, and a live event would wait for that turn: half a second for 4,000 readers.
 *
 * When a turn has read enough, all new connections without a request are paused, and each later turn lets some of them go on.
 * Other connections, such as those of publishers, are never paused.
 *
 * @param maxHeldMs - After this time all go on at once. Node's deadline for heads does not know that a connection is paused.
 */
export function limitFirstRequests(silent: NewConnections, maxHeldMs: number): FirstRequests {
  /** The paused connections, the next one to be read first, and when each was paused. */
  const held = new Map<Socket, number>()
  let askedThisTurn = 0
  let turnBegan = 0
  let isSlow = false
  let mayHold = true
  let isTurnWatched = false

  function hold(): void {
    const now = performance.now()
    for (const socket of silent.hold()) {
      socket.pause()
      held.set(socket, now)
    }
  }

  function startTurn(): void {
    isTurnWatched = false
    // As many again as were too slow for a turn: more would be paused again, behind all others.
    const room = isSlow ? Math.max(1, askedThisTurn) : maxPerTurn
    isSlow = false
    askedThisTurn = 0
    const [longestSince = Number.POSITIVE_INFINITY] = held.values()
    mayHold = performance.now() - longestSince < maxHeldMs
    release(mayHold ? room : held.size)
    if (held.size > 0 || !mayHold) watchTurn()
  }

  function release(count: number): void {
    let left = count
    for (const socket of held.keys()) {
      if (left === 0) return
      held.delete(socket)
      if (socket.destroyed) continue
      left -= 1
      silent.release(socket)
      socket.resume()
    }
  }

  function watchTurn(): void {
    if (isTurnWatched) return
    isTurnWatched = true
    setImmediate(startTurn)
  }

  return {
    asked() {
      const now = performance.now()
      if (askedThisTurn === 0) turnBegan = now
      askedThisTurn += 1
      watchTurn()
      isSlow ||= now - turnBegan > maxTurnMs
      if ((isSlow || askedThisTurn >= maxPerTurn) && mayHold) hold()
    },
  }
}

export interface NewConnections {
  /** The new connections without a request. Until `release`, they do not count as silent: their requests cannot be read. */
  hold(): Iterable<Socket>
  release(socket: Socket): void
}

export interface FirstRequests {
  /** Called for the first request of each connection. */
  asked(): void
}

// In a storm of `npm run bench -- storm`, a turn that reads 64 requests takes about 10 ms.
const maxPerTurn = 64
// A body in chunks of one byte that comes with its head takes 7 ms, so 64 of them would take half a second.
const maxTurnMs = 20
