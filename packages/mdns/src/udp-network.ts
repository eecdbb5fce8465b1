import { isIPv4, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { RejoinError } from '@rejoin/protocol'
import multicastDns from 'multicast-dns'
import { createNeighbourhood } from './neighbourhood.ts'
import type { DnsRecord, OpenNetwork, Query } from './network.ts'

export interface UdpOptions {
  /**
   * The address of the interface to use.
   * @defaultValue none: the source listens on all interfaces, and the system chooses where queries go out
   */
  interface?: string | undefined
  /**
   * The UDP port.
   * @defaultValue 5353, the port of mDNS
   */
  port?: number | undefined
}

/** The real link: UDP multicast on 224.0.0.251, port 5353. */
export function udpNetwork({ interface: address, port = 5353 }: UdpOptions = {}): OpenNetwork {
  return async (listener) => {
    // On Linux, a socket that is bound to the address of an interface gets no multicast.
    const socket = multicastDns({ bind: '0.0.0.0', port, ...(address === undefined ? {} : { interface: address }) })
    const around = createNeighbourhood({ interfaces: networkInterfaces, now: () => performance.now() })
    await new Promise<void>((resolve, reject) => {
      socket.once('ready', resolve)
      socket.once('error', (cause) => reject(cannotListen(port, cause)))
    })
    socket.on('error', listener.failed)
    socket.on('warning', listener.failed)
    socket.on('query', (_query, from) => {
      if (!around.isOwn(from.address)) listener.heard()
    })
    socket.on('response', ({ answers = [], additionals = [] }, from) => {
      // RFC 6762, sections 6 and 11: a true answer comes from the mDNS port and from the same link.
      if (from.port !== port || !around.isNear(from.address)) return
      listener.heard()
      listener.answered([...answers, ...additionals].flatMap(readRecord), from.address)
    })
    return {
      ask: (query) => socket.query(packetOf(query), (error) => error && listener.failed(error)),
      close: () => new Promise((resolve) => socket.destroy(resolve)),
    }
  }
}

function cannotListen(port: number, cause: Error): RejoinError {
  return new RejoinError(
    `mDNS needs UDP port ${port}, and it cannot be opened: ${cause.message}. Another program may hold it alone; programs that ` +
      'share it, as avahi-daemon does, are no trouble.',
    { code: 'unreachable', retryable: true, cause },
  )
}

function packetOf({ questions, known }: Query) {
  return {
    questions: questions.map(({ name, type }) => ({ name, type })),
    answers: known.map(({ name, data, ttl }) => ({ type: 'PTR' as const, name, data, ttl })),
  }
}

/** The record, when it is of a known type and its data is valid. */
function readRecord(answer: unknown): DnsRecord[] {
  const { type, name, ttl, class: kind, flush, data } = answer as Record<string, unknown>
  if (kind !== 'IN' || typeof name !== 'string' || typeof ttl !== 'number') return []
  const common = { name, ttl, flush: flush === true }
  if (type === 'PTR' && typeof data === 'string') return [{ ...common, type, data }]
  if (type === 'A' && typeof data === 'string' && isIPv4(data)) return [{ ...common, type, data }]
  if (type === 'AAAA' && typeof data === 'string' && isIPv6(data)) return [{ ...common, type, data }]
  if (type === 'TXT' && Array.isArray(data)) return [{ ...common, type, data }]
  if (type !== 'SRV') return []
  const { target, port } = (data ?? {}) as Record<string, unknown>
  if (typeof target !== 'string' || typeof port !== 'number') return []
  return [{ ...common, type, data: { target, port } }]
}
