import { RejoinError } from '@rejoin/protocol'

/**
 * The bodies of publishes that are in memory, until their events are in the log. When they are too many, the body that began
 * first and is not whole yet is rejected: an honest one is whole within moments, so the oldest are those that were sent to
 * fill the memory.
 */
export interface Incoming {
  /** Of all bodies together. */
  readonly bytes: number
  /**
   * Told by adapters: a body begins to come.
   *
   * @param reject - called once, when the body has to make room for others; what came of it is to be let go
   */
  begin(reject: (error: RejoinError) => void): IncomingBody
}

export interface IncomingBody {
  /** So much more of it is here. */
  add(bytes: number): void
  /** All of it is here; from now on it is not rejected. */
  whole(): void
  /** It has been published, or let go. */
  done(): void
}

export function createIncoming(maxBytes: number): Incoming {
  let total = 0
  /** Those that are not whole, in the order in which they began. */
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
