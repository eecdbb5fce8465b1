import { createTokenBuckets } from '../limits/token-bucket.ts'

/** The limits on probes: how many at once and how many in a second, from one network and in all. */
export interface Room {
  /** Counts a request. Returns 0 when it may be answered, else for how many milliseconds to wait. */
  ask(network: string): number
  /** Takes room for a stream; undefined when there is none. The returned function gives the room back. */
  enter(network: string): (() => void) | undefined
  now(): number
}

export function createRoom({ now = () => performance.now() }: RoomOptions = {}): Room {
  const ofNetwork = createTokenBuckets({ perSecond: 2, burst: askedByOneDoctor * 2, now })
  const ofAll = createTokenBuckets({ perSecond: 10, burst: askedByOneDoctor * 4, now })
  const here = new Map<string, number>()
  let inAll = 0

  return {
    now,
    ask: (network) => ofNetwork.take(network) || ofAll.take(''),
    enter(network) {
      const mine = here.get(network) ?? 0
      if (inAll >= mostInAll || mine >= mostOfNetwork) return undefined
      here.set(network, mine + 1)
      inAll += 1
      let isIn = true
      return () => {
        if (!isIn) return
        isIn = false
        inAll -= 1
        const left = (here.get(network) ?? 0) - 1
        if (left > 0) here.set(network, left)
        else here.delete(network)
      }
    },
  }
}

export interface RoomOptions {
  /**
   * A clock in milliseconds that never steps back.
   * @defaultValue performance.now
   */
  now?: () => number
}

// One run of the doctor sends about 25 requests. Behind a proxy that does not name its clients, all clients are one network.
const askedByOneDoctor = 30
// One run has seven streams open at most, and eight with --idle.
const mostOfNetwork = 16
const mostInAll = 32
