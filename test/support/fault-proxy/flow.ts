import type { Socket } from 'node:net'

/** What one direction of a connection suffers. */
export interface FlowToxics {
  /**
   * Delay of every byte, in ms.
   * @defaultValue 0
   */
  readonly latencyMs?: number
  /**
   * Up to this much more delay, drawn anew for every piece that arrives. Bytes stay in order: one that draws less waits
   * for those before it.
   * @defaultValue 0
   */
  readonly jitterMs?: number
  /**
   * The most that passes.
   * @defaultValue Infinity
   */
  readonly bytesPerSecond?: number
  /**
   * Whether what arrives is passed on in pieces of 1 to 7 bytes, a turn of the event loop apart.
   * @defaultValue false
   */
  readonly slice?: boolean
}

/** Carries bytes from one socket to another, through toxics that may change while they are under way. */
export function createFlow(source: Socket, sink: Socket, { random, toxics }: FlowOptions): Flow {
  let waiting: Piece[] = []
  let waitingBytes = 0
  let passed = 0
  let limit: { at: number; reached: () => void } | undefined
  let state: 'new' | 'running' | 'stopped' = 'new'
  let ended = false
  let blocked = false
  let freeAt = 0
  let timer: NodeJS.Timeout | undefined
  let turn: NodeJS.Immediate | undefined

  function arrive(bytes: Buffer): void {
    const { latencyMs = 0, jitterMs = 0 } = toxics() ?? {}
    const dueAt = Math.max(performance.now() + latencyMs + jitterMs * random(), waiting.at(-1)?.dueAt ?? 0)
    waiting.push({ bytes, dueAt })
    waitingBytes += bytes.length
    // What is delayed or slowed down waits here; a fast sender must not fill the memory with it.
    if (waitingBytes > 65_536) source.pause()
    pump()
  }

  function pump(): void {
    if (timer || turn || blocked) return
    for (let next = waiting[0]; next && state === 'running'; next = waiting[0]) {
      const waitMs = Math.max(next.dueAt, freeAt) - performance.now()
      if (waitMs > 0) {
        timer = setTimeout(resumePump, Math.ceil(waitMs))
        return
      }
      const { slice = false, bytesPerSecond = Number.POSITIVE_INFINITY } = toxics() ?? {}
      const size = slice ? 1 + Math.floor(random() * 7) : Math.max(Math.floor(bytesPerSecond / piecesPerSecond), 1)
      const piece = take(Math.min(size, next.bytes.length))
      freeAt = Math.max(freeAt, performance.now()) + (piece.length * 1000) / bytesPerSecond
      pass(piece)
      if (slice && !timer && state === 'running') {
        turn = setImmediate(resumePump)
        return
      }
      if (blocked) return
    }
    if (ended && waiting.length === 0 && state === 'running') sink.end()
  }

  function resumePump(): void {
    clearTimeout(timer)
    clearImmediate(turn)
    timer = undefined
    turn = undefined
    pump()
  }

  function take(length: number): Buffer {
    const first = waiting[0] as Piece
    const piece = first.bytes.subarray(0, length)
    if (length === first.bytes.length) waiting.shift()
    else waiting[0] = { bytes: first.bytes.subarray(length), dueAt: first.dueAt }
    waitingBytes -= length
    if (waitingBytes <= 65_536 && !blocked) source.resume()
    return piece
  }

  function pass(piece: Buffer): void {
    const part = limit ? piece.subarray(0, Math.max(limit.at - passed, 0)) : piece
    passed += part.length
    const isFull = part.length > 0 && !sink.write(part)
    if (limit && passed >= limit.at) {
      limit.reached()
      return
    }
    if (!isFull) return
    blocked = true
    source.pause()
    sink.once('drain', () => {
      blocked = false
      if (state === 'running') source.resume()
      resumePump()
    })
  }

  return {
    get passed() {
      return passed
    },
    isIdle: () => waiting.length === 0,
    start() {
      if (state !== 'new') return
      state = 'running'
      source.on('data', (bytes) => {
        if (state === 'running') arrive(bytes)
      })
      source.on('end', () => {
        ended = true
        pump()
      })
      source.resume()
    },
    changed() {
      const { latencyMs = 0, jitterMs = 0 } = toxics() ?? {}
      const soonest = performance.now() + latencyMs + jitterMs
      waiting = waiting.map(({ bytes, dueAt }) => ({ bytes, dueAt: Math.min(dueAt, soonest) }))
      freeAt = 0
      resumePump()
    },
    stopAt(bytes, reached) {
      limit = { at: bytes, reached }
    },
    stop() {
      state = 'stopped'
      waiting = []
      waitingBytes = 0
      clearTimeout(timer)
      clearImmediate(turn)
      source.pause()
    },
  }
}

// A slow line trickles; in one piece per second it would stutter.
const piecesPerSecond = 50

export interface FlowOptions {
  random(): number
  toxics(): FlowToxics | undefined
}

export interface Flow {
  /** Bytes that went on. */
  readonly passed: number
  /** Whether nothing waits in here. */
  isIdle(): boolean
  start(): void
  /** The toxics are other ones now; what waits under the old ones waits no longer than under the new. */
  changed(): void
  /** Calls `reached` once so many bytes have gone on, with the next one when they have already. */
  stopAt(bytes: number, reached: () => void): void
  /** Passes on nothing more, and leaves the sockets as they are. */
  stop(): void
}

interface Piece {
  readonly bytes: Buffer
  readonly dueAt: number
}
