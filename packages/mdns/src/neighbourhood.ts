import { BlockList } from 'node:net'
import type { NetworkInterfaceInfo } from 'node:os'

/** Which addresses are on our links, and which are ours. */
export interface Neighbourhood {
  /** Whether an address is on one of our links. */
  isNear(address: string): boolean
  /** Our own queries come back to us, and prove nothing. */
  isOwn(address: string): boolean
}

export interface NeighbourhoodOptions {
  /** As of `node:os`, which leaves out an interface without a carrier. */
  interfaces(): Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>
  /** Milliseconds that only go forward. */
  now(): number
}

// Looking at every packet would cost too much, so interfaces that have gone are known for a while.
const rereadMs = 5000
// A cable that was plugged in is known at its first packet, and a forger costs us ten looks a second at most.
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
