import type { Socket } from 'node:net'
import { networkOf } from '@rejoin/hub'

/**
 * Bounds how many connections of one address may be open without having sent a whole request. Until the deadline for heads
 * closes them, one address could fill all the room for connections with them.
 */
export function limitSilent({ max, onReject }: SilentOptions): SilentSockets {
  /** Connections that have not asked yet, by both ends: a TLS socket and the socket below it have the same name. */
  const waiting = new Map<string, Waiting>()
  const silent = new Map<string, number>()

  function judge(name: string, socket: Socket): void {
    const entry = waiting.get(name)
    if (entry?.socket !== socket) return
    const network = networkOf(socket.remoteAddress ?? '')
    const count = silent.get(network) ?? 0
    if (count >= max) {
      onReject('silent')
      socket.destroy()
      return
    }
    silent.set(network, count + 1)
    entry.network = network
  }

  function leave(name: string): void {
    const entry = waiting.get(name)
    if (!entry) return
    waiting.delete(name)
    clearTimeout(entry.timer)
    if (entry.network === undefined) return
    const left = (silent.get(entry.network) ?? 0) - 1
    if (left > 0) silent.set(entry.network, left)
    else silent.delete(entry.network)
  }

  const asked = new WeakSet<object>()
  return {
    opened(socket) {
      const name = nameOf(socket)
      // After a long turn this timer is due before the sockets are read, so a read comes first.
      const timer = setTimeout(() => setImmediate(judge, name, socket), graceMs).unref()
      waiting.set(name, { socket, timer, network: undefined })
      socket.once('close', () => waiting.get(name)?.socket === socket && leave(name))
    },
    asked(socket) {
      // The name is made for the first request of a connection alone.
      if (asked.has(socket)) return
      asked.add(socket)
      leave(nameOf(socket))
    },
  }
}

export interface SilentOptions {
  /** Connections of one address, or of one /64. */
  readonly max: number
  onReject(kind: 'silent'): void
}

export interface SilentSockets {
  opened(socket: Socket): void
  /** A request has come over this connection. */
  asked(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): void
}

interface Waiting {
  readonly socket: Socket
  readonly timer: NodeJS.Timeout
  /** What it is counted for, once it is. */
  network: string | undefined
}

// An honest client sends its request with the connection. A crowd that returns at once is not to be counted before it is read.
const graceMs = 1000

function nameOf({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress} ${remotePort}`
}
