import type { Socket } from 'node:net'
import { networkOf } from '@rejoin/hub/internal'
import type { NewConnections } from './first-requests.ts'

/**
 * Bounds the connections of one address that have sent no whole request yet. Without the bound, one address could use up all
 * connections until the deadline for heads closes its own.
 */
export function limitSilent({ max, isTls, onReject }: SilentOptions): SilentSockets {
  /** Connections without a request that are too new to be counted, the oldest first. */
  const fresh = new Map<Key, Opened>()
  /** For how long those connections were silent that the hub itself does not read now. */
  const held = new Map<Key, number>()
  const counted = new Map<Key, Counted>()
  const silent = new Map<string, number>()
  /** TLS sockets that have sent a request. Spares making the key of the same socket for each request. */
  const known = new WeakSet<object>()
  let isWatching = false

  function keyOf(socket: Peer): Key {
    // A TLS socket and the TCP socket below it are two objects, so their shared address and port identify them.
    return isTls ? `${socket.remoteAddress} ${socket.remotePort}` : socket
  }

  /** One timer for all connections, because a thousand may open within a moment. */
  function judgeLater(afterMs: number): void {
    if (isWatching) return
    isWatching = true
    // After a long turn, timers run before sockets are read. `setImmediate` lets the read come first.
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

  /** Returns false when the connection was not among the silent ones. */
  function leave(key: Key): boolean {
    if (fresh.delete(key) || held.delete(key)) return true
    const entry = counted.get(key)
    if (!entry) return false
    counted.delete(key)
    const { network } = entry
    const left = (silent.get(network) ?? 0) - 1
    if (left > 0) silent.set(network, left)
    else silent.delete(network)
    return true
  }

  return {
    opened(socket) {
      const key = keyOf(socket)
      fresh.set(key, { socket, at: performance.now() })
      judgeLater(graceMs)
      // By the time this connection has closed, a new one may have the same address and port.
      const isMeant = () => (fresh.get(key) ?? counted.get(key))?.socket === socket
      if (isTls) socket.once('close', () => isMeant() && leave(key))
    },
    closed: (socket) => void (isTls || leave(socket)),
    asked(socket) {
      if (!isTls) return leave(socket)
      if (known.has(socket)) return false
      known.add(socket)
      return leave(keyOf(socket))
    },
    hold() {
      const now = performance.now()
      const sockets = []
      for (const [key, { socket, at }] of fresh) {
        held.set(key, now - at)
        sockets.push(socket)
      }
      fresh.clear()
      return sockets
    },
    release(socket) {
      const silentMs = held.get(socket)
      if (silentMs === undefined) return
      held.delete(socket)
      fresh.set(socket, { socket, at: performance.now() - silentMs })
      judgeLater(graceMs - silentMs)
    },
  }
}

export interface SilentOptions {
  /** Connections of one address, for IPv6 of one /64. */
  readonly max: number
  /** Whether requests come on TLS sockets, which are other objects than the sockets that `opened` gets. */
  readonly isTls: boolean
  onReject(kind: 'silent'): void
}

export interface SilentSockets extends NewConnections {
  opened(socket: Socket): void
  closed(socket: Socket): void
  /** Called when a request has come on this connection. Returns whether it was the first. */
  asked(socket: Peer): boolean
}

type Peer = Pick<Socket, 'remoteAddress' | 'remotePort'>

/** The socket itself; with TLS, the peer's address and port. */
type Key = Peer | string

interface Opened {
  readonly socket: Socket
  /** When the connection opened, by `performance.now()`. */
  readonly at: number
}

interface Counted {
  readonly socket: Socket
  readonly network: string
}

// An honest client sends its request as soon as it is connected. The hub needs a moment to read the requests of a crowd.
const graceMs = 1000
