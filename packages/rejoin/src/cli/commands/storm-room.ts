import { readFileSync } from 'node:fs'
import type { RejoinError } from '@rejoin/protocol'
import { invalidOption } from '../../errors.ts'
import { connectionRoom } from '../../limits/reader-room.ts'

/** Rejects a storm that is too large for this machine: its failed connections would look like faults of the hub. */
export function checkRoom(readers: number, { files, ports }: Room): void {
  if (files !== undefined && readers > files) {
    const needed = readers + filesBeside
    throw tooMany(
      `${readers} readers need ${readers} connections, and this process may open ${files}.`,
      `Raise the limit first: ulimit -n ${needed}. The hub needs as much, and on this machine has the same limit.`,
    )
  }
  if (ports !== undefined && readers > ports) {
    throw tooMany(
      `${readers} readers need a port each, and this machine has ${ports} for connections to one address.`,
      'Widen the range first: sysctl -w net.ipv4.ip_local_port_range="1024 65535". Or storm from two machines.',
    )
  }
}

/** The files and ports that the system lets one process open; undefined when the system does not tell. */
export interface Room {
  readonly files: number | undefined
  readonly ports: number | undefined
}

export function roomHere(portsFile = '/proc/sys/net/ipv4/ip_local_port_range'): Room {
  const [, first, last] = /^(\d+)\s+(\d+)/.exec(read(portsFile)) ?? []
  const ports = first === undefined ? undefined : Number(last) - Number(first) + 1
  return { files: connectionRoom(), ports }
}

// The number that `connectionRoom` reserves for other files than connections.
const filesBeside = 128

function tooMany(why: string, advice: string): RejoinError {
  return invalidOption(`${why} ${advice} Or give fewer --readers.`)
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Not Linux: the limit is unknown.
    return ''
  }
}
