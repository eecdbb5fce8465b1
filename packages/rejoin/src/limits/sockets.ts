import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { networkOf } from '@rejoin/hub/internal'
import type { NewConnections } from './first-requests.ts'

/**
 * Bounds the open connections of one address. Without the bound, one address could hold every connection by asking for something
 * small over each of them every few seconds.
 *
 * Over the bound, an idle connection of the address is closed for a new one; when none is idle, the new one is closed. When
 * connections run out for everybody, the idle ones of the address that has most of them are closed.
 */
export function limitSockets({ maxPerIp, room, isTls, onReject }: OpenSocketsOptions): OpenSockets {
  const entries = new Map<Key, Entry>()
  const networks = new Map<string, Network>()

  /** Closes connections without a request, those that are idle for longest first. */
  function closeIdle({ idle }: Network, count: number): void {
    let left = count
    for (const entry of idle) {
      if (left === 0) return
      left -= 1
      onReject('sockets')
      // At once, because the room is needed before the socket has told that it is closed.
      forget(entry)
      entry.socket.destroy()
    }
  }

  function forget(entry: Entry): void {
    if (entries.get(entry.key) === entry) entries.delete(entry.key)
    const network = networks.get(entry.network)
    if (!network?.open.delete(entry)) return
    network.idle.delete(entry)
    if (network.open.size === 0) networks.delete(entry.network)
  }

  function mostIdle(): Network | undefined {
    let most: Network | undefined
    for (const network of networks.values()) if (network.idle.size > (most?.idle.size ?? 0)) most = network
    return most
  }

  function leave(entry: Entry): void {
    entry.requests -= 1
    const network = networks.get(entry.network)
    if (entry.requests === 0 && network?.open.has(entry)) network.idle.add(entry)
  }

  // One function for all responses of plain sockets: a closure for each would take memory for as long as its stream is open.
  function left(this: ServerResponse): void {
    const entry = entries.get(this.req.socket)
    if (entry) leave(entry)
  }

  return {
    opened(socket) {
      const name = networkOf(socket.remoteAddress ?? '')
      const network = networks.get(name) ?? { open: new Set(), idle: new Set() }
      networks.set(name, network)
      const entry: Entry = { key: keyOf(socket, isTls), socket, network: name, requests: 0 }
      // Those that are open already: the new one is idle too, until its request has come.
      if (network.open.size >= maxPerIp) closeIdle(network, 1)
      if (network.open.size >= maxPerIp) {
        onReject('sockets')
        socket.destroy()
        return
      }
      if (entries.size >= room) {
        const busiest = mostIdle()
        // Several at a time, because the search looks at every address.
        if (busiest) closeIdle(busiest, Math.min(evictedAtOnce, Math.ceil(busiest.idle.size / 2)))
      }
      entries.set(entry.key, entry)
      network.open.add(entry)
      network.idle.add(entry)
      networks.set(name, network)
      if (isTls) socket.once('close', () => forget(entry))
    },
    closed(socket) {
      const entry = isTls ? undefined : entries.get(socket)
      if (entry) forget(entry)
    },
    isIdle: (socket) => entries.get(keyOf(socket, isTls))?.requests === 0,
    asked(request, response) {
      const entry = entries.get(keyOf(request.socket, isTls))
      if (!entry) return
      entry.requests += 1
      networks.get(entry.network)?.idle.delete(entry)
      if (isTls) response.once('close', () => leave(entry))
      else response.on('close', left)
    },
  }
}

export interface OpenSocketsOptions {
  /** Connections of one address, for IPv6 of one /64. */
  readonly maxPerIp: number
  /** Connections of all addresses, beyond which idle ones are closed. */
  readonly room: number
  /** Whether requests come on TLS sockets, which are other objects than the sockets that `opened` gets. */
  readonly isTls: boolean
  onReject(kind: 'sockets'): void
}

export interface OpenSockets {
  opened(socket: Socket): void
  closed(socket: Socket): void
  /** Whether every request that was read on this connection is answered. */
  isIdle(socket: Socket): boolean
  /** Called for each request. Its connection is not idle until the response is closed. */
  asked(request: IncomingMessage, response: ServerResponse): void
}

interface Entry {
  readonly key: Key
  readonly socket: Socket
  readonly network: string
  /** Requests that are not answered yet. */
  requests: number
}

interface Network {
  readonly open: Set<Entry>
  /** Connections without a request now, those first that have been idle for longest. */
  readonly idle: Set<Entry>
}

const evictedAtOnce = 64

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
      const key = keyOf(socket, isTls)
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
      return leave(keyOf(socket, isTls))
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

type Peer = Pick<Socket, 'remoteAddress' | 'remotePort'>

/** The socket itself; with TLS, the peer's address and port. */
type Key = Peer | string

function keyOf(socket: Peer, isTls: boolean): Key {
  // A TLS socket and the TCP socket below it are two objects, so their shared address and port identify them.
  return isTls ? `${socket.remoteAddress} ${socket.remotePort}` : socket
}
