import { createTokenBuckets } from '../../limits/token-bucket.ts'

/** How much of a hub probes may take: how many at once, and how many in a second, from one network and in all. */
export interface Room {
  /** Counts a request. 0 when it may be answered, else how long to wait, in milliseconds. */
  ask(network: string): number
  /** Takes room for a stream; undefined when there is none. The function gives the room back, once. */
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
   * Milliseconds on a clock that only goes forward.
   * @defaultValue performance.now
   */
  now?: () => number
}

// One run of the doctor asks about 25 times. Behind a proxy that says nothing of its clients all of them are one network.
const askedByOneDoctor = 30
// One run has seven streams open at most, and eight with --idle.
const mostOfNetwork = 16
const mostInAll = 32
