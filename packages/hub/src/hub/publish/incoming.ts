import { RejoinError } from '@rejoin/protocol'

/**
 * The bodies of publishes that are in memory, until their events are in the log. When they take too much memory, the oldest
 * incomplete body is rejected. An honest body is complete within moments, so the oldest ones may be an attack.
 */
export interface Incoming {
  /** Bytes of all bodies together. */
  readonly bytes: number
  /**
   * Told by adapters: a body begins to come.
   *
   * @param reject - called once, when the body has to make room for others. The adapter then lets go of its bytes.
   */
  begin(reject: (error: RejoinError) => void): IncomingBody
}

export interface IncomingBody {
  /** This many more bytes have arrived. */
  add(bytes: number): void
  /** The body is complete. From now on it is not rejected. */
  whole(): void
  /** The body has been published, or let go. */
  done(): void
}

export function createIncoming(maxBytes: number): Incoming {
  let total = 0
  /** Incomplete bodies, in the order in which they began. */
  const coming = new Set<Body>()

  class Body implements IncomingBody {
    readonly #reject: (error: RejoinError) => void
    #bytes = 0
    #isDone = false

    constructor(reject: (error: RejoinError) => void) {
      this.#reject = reject
      coming.add(this)
    }

    add(bytes: number): void {
      if (this.#isDone) return
      this.#bytes += bytes
      total += bytes
      for (const oldest of coming) {
        if (total <= maxBytes) return
        oldest.makeRoom()
      }
    }

    makeRoom(): void {
      this.done()
      this.#reject(overloaded())
    }

    whole(): void {
      coming.delete(this)
    }

    done(): void {
      if (this.#isDone) return
      this.#isDone = true
      coming.delete(this)
      total -= this.#bytes
    }
  }

  return {
    get bytes() {
      return total
    },
    begin: (reject) => new Body(reject),
  }
}

function overloaded(): RejoinError {
  return new RejoinError('The hub is given more to publish than it has memory for. Send it again in a second.', {
    code: 'overloaded',
    retryable: true,
  })
}
