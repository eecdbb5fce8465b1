import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { networkOf } from '@rejoin/hub/internal'

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

  function keyOf(socket: Peer): Key {
    // A TLS socket and the TCP socket below it are two objects, so their shared address and port identify them.
    return isTls ? `${socket.remoteAddress} ${socket.remotePort}` : socket
  }

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
      const entry: Entry = { key: keyOf(socket), socket, network: name, requests: 0 }
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
    asked(request, response) {
      const entry = entries.get(keyOf(request.socket))
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
  /** Called for each request. Its connection is not idle until the response is closed. */
  asked(request: IncomingMessage, response: ServerResponse): void
}

type Peer = Pick<Socket, 'remoteAddress' | 'remotePort'>

/** The socket itself; with TLS, the peer's address and port. */
type Key = Peer | string

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
