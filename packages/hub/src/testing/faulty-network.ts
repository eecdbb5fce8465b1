import type { Cancel, Environment } from '../environment.ts'

/**
 * A network between readers and a hub, which a test can cut and slow down. It carries requests and responses of the fetch
 * standard, so it needs no sockets. Readers see the same errors that a real `fetch` gives them.
 */
export interface FaultyNetwork {
  /** Gives the response of `handler`, carried across this network. Rejects, as `fetch` does, while the network is cut. */
  carry(request: Request, handler: (request: Request) => Promise<Response>): Promise<Response>
  /** Breaks every connection, also in the middle of a response, and every new connection for `forMs`. */
  cut(forMs: number): void
  /** Limits each connection to this speed. With 0, connections stay open and nothing gets through. */
  slow(bytesPerSecond: number): void
  /** Ends a cut, and lets connections be fast again. */
  heal(): void
}

/** @param onActivity - called whenever the network carries something, for a test that waits until it is quiet */
export function createFaultyNetwork(environment: Environment, onActivity: () => void = () => undefined): FaultyNetwork {
  const connections = new Set<Connection>()
  let isCut = false
  let bytesPerSecond = Number.POSITIVE_INFINITY
  let cancelHealing: Cancel = () => undefined
  /** Wakes the connections that wait for their bytes to be sent: they start again when the speed changes. */
  let waiting = new Set<() => void>()

  function setSpeed(speed: number): void {
    bytesPerSecond = speed
    const waked = waiting
    waiting = new Set()
    for (const wake of waked) wake()
  }

  /** Resolves with how many of the bytes are through; 0 when the speed has changed and the caller has to ask again. */
  async function sent(bytes: number): Promise<number> {
    if (bytesPerSecond === Number.POSITIVE_INFINITY) return bytes
    const piece = Math.min(bytes, Math.max(1, Math.floor(bytesPerSecond * stepSeconds)))
    return new Promise((resolve) => {
      let cancel: Cancel = () => undefined
      const wake = () => {
        cancel()
        resolve(0)
      }
      waiting.add(wake)
      if (bytesPerSecond === 0) return
      cancel = environment.after((piece / bytesPerSecond) * 1000, () => {
        waiting.delete(wake)
        resolve(piece)
      })
    })
  }

  function cutAll(): void {
    for (const connection of [...connections]) connection.fail(new TypeError('network error'))
  }

  return {
    async carry(request, handler) {
      onActivity()
      if (isCut) throw new TypeError('fetch failed')
      const connection = newConnection(request.signal, {
        sent,
        onActivity,
        onOver: () => connections.delete(connection),
      })
      connections.add(connection)
      Object.defineProperty(request, 'signal', { value: connection.signal })
      try {
        const { status, headers, body } = await Promise.race([handler(request), connection.broken])
        onActivity()
        return new Response(body && connection.carry(body), { status, headers })
      } catch (error) {
        connection.fail(error)
        throw error
      }
    },
    cut(forMs) {
      cancelHealing()
      isCut = true
      cutAll()
      if (forMs < Number.POSITIVE_INFINITY) {
        cancelHealing = environment.after(forMs, () => {
          isCut = false
        })
      }
    },
    slow: setSpeed,
    heal() {
      cancelHealing()
      isCut = false
      setSpeed(Number.POSITIVE_INFINITY)
    },
  }
}

// A slow connection carries its bytes in pieces of a tenth of a second each.
const stepSeconds = 0.1

interface Connection {
  /** Aborted when either side has gone. */
  readonly signal: AbortSignal
  /** Rejects when the connection breaks. */
  readonly broken: Promise<never>
  carry(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array>
  fail(error: unknown): void
}

interface ConnectionParts {
  /** Resolves with how many of the bytes are through; 0 when the caller has to ask again. */
  sent(bytes: number): Promise<number>
  onActivity(): void
  onOver(): void
}

function newConnection(asked: AbortSignal, { sent, onActivity, onOver }: ConnectionParts): Connection {
  const gone = new AbortController()
  let out: ReadableStreamDefaultController<Uint8Array> | undefined
  let isOver = false
  let reject: (error: unknown) => void = () => undefined
  const broken = new Promise<never>((_, rejectBroken) => {
    reject = rejectBroken
  })
  // Once there is a response, nobody waits for `broken`, and its rejection must not count as unhandled.
  broken.catch(() => undefined)

  function finish(): boolean {
    if (isOver) return false
    isOver = true
    asked.removeEventListener('abort', leave)
    onOver()
    onActivity()
    return true
  }

  function fail(error: unknown): void {
    if (!finish()) return
    reject(error)
    out?.error(error)
    gone.abort()
  }

  function leave(): void {
    fail(asked.reason)
  }

  asked.addEventListener('abort', leave)
  if (asked.aborted) leave()
  return { signal: gone.signal, broken, carry, fail }

  function carry(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader()
    let rest = new Uint8Array()
    // `cancel` rejects for a body that has already failed: then nothing is left to cancel.
    gone.signal.addEventListener('abort', () => void reader.cancel().catch(() => undefined))

    async function deliver(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
      if (rest.length === 0) {
        const { done, value } = await reader.read()
        if (isOver) return
        if (done) {
          finish()
          controller.close()
          return
        }
        rest = new Uint8Array(value)
      }
      let through = 0
      while (through === 0 && !isOver) through = await sent(rest.length)
      if (isOver) return
      onActivity()
      controller.enqueue(rest.subarray(0, through))
      rest = rest.subarray(through)
    }

    return new ReadableStream<Uint8Array>(
      {
        start(controller) {
          out = controller
        },
        pull: (controller) => deliver(controller).catch(fail),
        cancel() {
          if (finish()) gone.abort()
        },
      },
      // Nothing is read ahead: bytes that the reader does not take wait in the hub, which counts them.
      { highWaterMark: 0 },
    )
  }
}
