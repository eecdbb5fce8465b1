import type { Socket } from 'node:net'

/**
 * Bounds the new connections whose first request is read in one turn of the event loop. When thousands of readers return together,
 * Node would read all of their requests in one turn, and a live event would wait for that turn: half a second for 4,000 readers.
 *
 * When a turn has read enough, all connections without a request are paused. Each later turn lets some of them go on, the oldest
 * first. Connections that have already sent a request, such as those of publishers, are never paused.
 */
export function limitFirstRequests(silent: SilentConnections): FirstRequests {
  /** In the order in which they will be read. */
  const held = new Set<Socket>()
  let read = 0
  let isTurnWatched = false

  function hold(): void {
    for (const socket of silent.sockets()) {
      if (held.has(socket)) continue
      socket.pause()
      held.add(socket)
    }
  }

  function startTurn(): void {
    isTurnWatched = false
    read = 0
    let room = maxPerTurn
    for (const socket of held) {
      if (room === 0) break
      held.delete(socket)
      if (socket.destroyed) continue
      room -= 1
      silent.opened(socket)
      socket.resume()
    }
    if (held.size > 0) watchTurn()
  }

  function watchTurn(): void {
    if (isTurnWatched) return
    isTurnWatched = true
    setImmediate(startTurn)
  }

  return {
    count() {
      read += 1
      watchTurn()
      if (read === maxPerTurn) hold()
    },
  }
}

export interface SilentConnections {
  /** The connections that have sent no request yet. */
  sockets(): Iterable<Socket>
  /** Counts the time of a connection's silence anew: while it was held, its request could not be read. */
  opened(socket: Socket): void
}

export interface FirstRequests {
  /** Called for the first request of each connection. */
  count(): void
}

// About 10 ms of work.
const maxPerTurn = 64
