import type { Socket } from 'node:net'
import { networkOf } from '@rejoin/hub'

/**
 * Bounds how many connections of one address may be open without having sent a whole request. Until the deadline for heads
 * closes them, one address could fill all the room for connections with them.
 */
export function limitSilent({ max, isTls, onReject }: SilentOptions): SilentSockets {
  /** Connections that have not asked yet and are not counted yet, the oldest first. */
  const fresh = new Map<Key, Opened>()
  const counted = new Map<Key, Counted>()
  const silent = new Map<string, number>()
  /** TLS sockets that have asked: their names are made once. */
  const known = new WeakSet<object>()
  let isWatching = false

  function keyOf(socket: Peer): Key {
    // A TLS socket and the socket below it are two objects with the same two ends.
    return isTls ? `${socket.remoteAddress} ${socket.remotePort}` : socket
  }

  /** One timer for all of them, because a thousand connections may open within a moment. */
  function judgeLater(afterMs: number): void {
    if (isWatching) return
    isWatching = true
    // After a long turn this timer is due before the sockets are read, so a read comes first.
    setTimeout(() => setImmediate(judgeDue), afterMs).unref()
  }

  function judgeDue(): void {
    isWatching = false
    for (const [key, { socket, at }] of fresh) {
      const leftMs = at + graceMs - performance.now()
      if (leftMs > 0) {
        judgeLater(leftMs)
        break
      }
      fresh.delete(key)
      judge(key, socket)
    }
  }

  function judge(key: Key, socket: Socket): void {
    const network = networkOf(socket.remoteAddress ?? '')
    const count = silent.get(network) ?? 0
    if (count >= max) {
      onReject('silent')
      socket.destroy()
      return
    }
    silent.set(network, count + 1)
    counted.set(key, { socket, network })
  }

  function leave(key: Key): void {
    if (fresh.delete(key)) return
    const entry = counted.get(key)
    if (!entry) return
    counted.delete(key)
    const { network } = entry
    const left = (silent.get(network) ?? 0) - 1
    if (left > 0) silent.set(network, left)
    else silent.delete(network)
  }

  return {
    opened(socket) {
      const key = keyOf(socket)
      fresh.set(key, { socket, at: performance.now() })
      judgeLater(graceMs)
      // The two ends may be those of another connection by the time at which this one has closed.
      const isMeant = () => (fresh.get(key) ?? counted.get(key))?.socket === socket
      if (isTls) socket.once('close', () => isMeant() && leave(key))
    },
    closed: (socket) => void (isTls || leave(socket)),
    asked(socket) {
      if (!isTls) {
        leave(socket)
      } else if (!known.has(socket)) {
        known.add(socket)
        leave(keyOf(socket))
      }
    },
  }
}

export interface SilentOptions {
  /** Connections of one address, or of one /64. */
  readonly max: number
  /** Whether the requests come over other sockets than the connections. */
  readonly isTls: boolean
  onReject(kind: 'silent'): void
}

export interface SilentSockets {
  opened(socket: Socket): void
  closed(socket: Socket): void
  /** A request has come over this connection. */
  asked(socket: Peer): void
}

type Peer = Pick<Socket, 'remoteAddress' | 'remotePort'>

/** The socket; with TLS, the names of both of its ends. */
type Key = Peer | string

interface Opened {
  readonly socket: Socket
  /** When, by the clock of `performance.now()`. */
  readonly at: number
}

interface Counted {
  readonly socket: Socket
  readonly network: string
}

// An honest client sends its request with the connection. A crowd that returns at once is not to be counted before it is read.
const graceMs = 1000
