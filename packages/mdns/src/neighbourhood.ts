import { BlockList } from 'node:net'
import type { NetworkInterfaceInfo } from 'node:os'

/** The addresses of this machine, and of its links. */
export interface Neighbourhood {
  /** Whether an address belongs to a link of this machine. */
  isNear(address: string): boolean
  /** Whether an address is one of this machine's own. Its own queries come back to it, and prove nothing. */
  isOwn(address: string): boolean
}

export interface NeighbourhoodOptions {
  /** `networkInterfaces` of `node:os`, which leaves out an interface without a carrier. */
  interfaces(): Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>
  /** Milliseconds of a clock that only goes forward. */
  now(): number
}

// Reading the interfaces at every packet would cost too much. So an interface that has gone is still known for this
// time.
const rereadMs = 5000
// An unknown address makes the source read the interfaces again: a new cable works from its first packet on, and forged
// packets cost at most ten reads a second.
const strangerRereadMs = 100

export function createNeighbourhood({ interfaces, now }: NeighbourhoodOptions): Neighbourhood {
  let links = new BlockList()
  let own = new Set<string>()
  let readAt = Number.NEGATIVE_INFINITY

  function lookAgainAfter(ms: number): boolean {
    if (now() - readAt < ms) return false
    readAt = now()
    links = new BlockList()
    own = new Set()
    links.addSubnet('169.254.0.0', 16, 'ipv4')
    for (const { family, address, cidr } of Object.values(interfaces()).flatMap((each) => each ?? [])) {
      own.add(address)
      const [network, bits] = cidr?.split('/') ?? []
      if (family === 'IPv4' && network && bits) links.addSubnet(network, Number(bits), 'ipv4')
    }
    return true
  }

  function isOnLink(address: string): boolean {
    return links.check(address, 'ipv4')
  }

  return {
    isNear(address) {
      lookAgainAfter(rereadMs)
      return isOnLink(address) || (lookAgainAfter(strangerRereadMs) && isOnLink(address))
    },
    isOwn(address) {
      lookAgainAfter(rereadMs)
      return own.has(address)
    },
  }
}
