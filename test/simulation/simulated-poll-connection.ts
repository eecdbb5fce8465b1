import type { PollAnswer, ReaderRejection } from '@rejoin/hub/internal'
import type { Breakable } from './simulated-connection.ts'
import type { World } from './virtual-world.ts'

/** One request and its answer, which arrives in one piece, late, or not at all. */
export interface PollConnection extends Breakable {
  /** Aborted, on the side of the hub, when the reader has gone. */
  readonly gone: AbortSignal
  /** Brings an answer to the reader; rejects when the connection was cut. */
  carry(answer: Promise<PollAnswer | ReaderRejection>): Promise<PollAnswer | ReaderRejection>
}

export function createPollConnection(
  world: World,
  latencyMs: number,
  left: AbortSignal,
  onCut: () => void,
): PollConnection {
  const { chance } = world
  const gone = new AbortController()
  let isOpen = true
  let isFrozen = false
  let stalledUntil = 0
  let fail: (error: Error) => void = () => {}

  function close(): void {
    isOpen = false
    left.removeEventListener('abort', close)
    if (!isFrozen) world.after(chance.between(0, 500), () => gone.abort())
  }

  left.addEventListener('abort', close)
  return {
    gone: gone.signal,
    get open() {
      return isOpen
    },
    carry: (answer) =>
      new Promise((resolve, reject) => {
        fail = reject
        void answer.then((given) => {
          world.after(Math.max(chance.between(0, latencyMs), stalledUntil - world.now), () => {
            if (isFrozen || !isOpen) return
            isOpen = false
            left.removeEventListener('abort', close)
            resolve(given)
          })
        }, reject)
      }),
    stall(ms) {
      stalledUntil = world.now + ms
    },
    cut() {
      if (!isOpen) return
      onCut()
      close()
      fail(new Error('the connection was cut'))
    },
    freeze() {
      isFrozen = true
    },
  }
}
