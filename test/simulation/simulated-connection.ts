import type { Sink } from '@rejoin/hub/internal'
import type { World } from './virtual-world.ts'

/**
 * One connection between a hub and a reader, byte by byte: what a hub has written waits, travels and arrives in pieces of
 * any size. It may stand still, be cut at any byte, or fall silent without anybody being told.
 */
export interface Connection extends Breakable {
  readonly sink: Sink
  /** What the reader's side reads: the next piece, null at the end; rejects when the connection was cut. */
  read(): Promise<Uint8Array | null>
  /** The reader has gone. */
  leave(): void
}

/** What can go wrong between a hub and a reader, whatever goes on between them. */
export interface Breakable {
  readonly open: boolean
  /** Nothing is taken from the hub for a while: the reader is slow. */
  stall(ms: number): void
  /** Cuts the connection at a byte of chance. What was on its way up to there arrives. */
  cut(): void
  /** Nothing arrives any more, in either direction, and nobody is told. */
  freeze(): void
}

export interface ConnectionOptions {
  readonly world: World
  /** Bytes that may wait in the hub before the sink counts as full. */
  readonly budgetBytes: number
  readonly latencyMs: number
  onWrite(bytes: Uint8Array): void
  /** Told on the hub's machine: a full sink has emptied. */
  onDrain(): void
  /** Told on the hub's machine: the reader has gone. */
  onGone(): void
  /** A cut fell inside a frame. */
  onTorn(): void
}

// More than this is not taken from the hub as long as the reader does not read, as a kernel's buffer would not.
const unreadPieces = 4

export function createConnection(options: ConnectionOptions): Connection {
  const { world } = options
  const { chance } = world
  const unsent: Uint8Array[] = []
  const travelling: Uint8Array[] = []
  const arrived: Uint8Array[] = []
  let unsentBytes = 0
  let full = false
  let sending = false
  let stalledUntil = 0
  let lastArrival = 0
  /** How the connection ends for the reader once it has read what arrived. */
  let ending: 'in order' | 'cut' | undefined
  let finished = false
  let frozen = false
  let gone = false
  let lastByte = newline
  let reading: { resolve: (piece: Uint8Array | null) => void; reject: (error: Error) => void } | undefined

  function send(): void {
    if (sending || frozen || gone || (unsentBytes === 0 && !finished)) return
    sending = true
    const wait = Math.max(chance.between(0, options.latencyMs / 2), stalledUntil - world.now)
    world.after(wait, transmit)
  }

  function transmit(): void {
    sending = false
    if (frozen || gone) return
    if (world.now < stalledUntil || arrived.length + travelling.length > unreadPieces) {
      sending = true
      world.after(Math.max(options.latencyMs, stalledUntil - world.now), transmit)
      return
    }
    if (unsentBytes > 0) travel(take(chance.happens(0.75) ? unsentBytes : chance.whole(1, unsentBytes)))
    if (unsentBytes === 0 && finished) end('in order')
    if (unsentBytes === 0 && full) {
      full = false
      options.onDrain()
    }
    send()
  }

  function take(bytes: number): Uint8Array {
    const all = unsent.length === 1 ? (unsent[0] as Uint8Array) : Buffer.concat(unsent)
    unsent.length = 0
    unsentBytes = all.length - bytes
    if (unsentBytes > 0) unsent.push(all.subarray(bytes))
    return all.subarray(0, bytes)
  }

  function travel(piece: Uint8Array): void {
    travelling.push(piece)
    lastArrival = Math.max(lastArrival, world.now + chance.between(0, options.latencyMs))
    world.after(lastArrival - world.now, () => {
      if (frozen || gone || ending === 'cut') return
      const next = travelling.shift()
      if (next) arrive(next)
    })
  }

  function arrive(piece: Uint8Array): void {
    if (piece.length === 0) return
    lastByte = piece[piece.length - 1] as number
    arrived.push(piece)
    answer()
  }

  function end(how: 'in order' | 'cut'): void {
    lastArrival = Math.max(lastArrival, world.now + chance.between(0, options.latencyMs))
    world.after(how === 'cut' ? 0 : lastArrival - world.now, () => {
      if (frozen) return
      ending ??= how
      answer()
    })
  }

  function answer(): void {
    if (!reading || gone) return
    const piece = arrived.shift()
    if (piece === undefined && ending === undefined) return
    const { resolve, reject } = reading
    reading = undefined
    if (piece !== undefined) resolve(piece)
    else if (ending === 'cut') reject(new Error('the connection was cut'))
    else resolve(null)
    send()
  }

  function cut(): void {
    if (ending || gone) return
    const all = Buffer.concat([...travelling, ...unsent])
    travelling.length = 0
    unsent.length = 0
    unsentBytes = 0
    arrive(all.subarray(0, chance.whole(0, all.length)))
    // Every frame ends in a line feed, and no piece of one that was cut in a line does.
    if (lastByte !== newline) options.onTorn()
    ending = 'cut'
    answer()
    world.after(chance.between(0, 500), options.onGone)
  }

  return {
    sink: {
      write({ plain }) {
        options.onWrite(plain)
        if (!gone && ending !== 'cut') {
          unsent.push(plain)
          unsentBytes += plain.length
          send()
        }
        if (unsentBytes > options.budgetBytes) full = true
        return !full
      },
      get pending() {
        return unsentBytes
      },
      end() {
        finished = true
        send()
      },
      destroy() {
        unsent.length = 0
        unsentBytes = 0
        cut()
      },
    },
    get open() {
      return !gone && ending === undefined && !finished
    },
    read: () =>
      new Promise((resolve, reject) => {
        reading = { resolve, reject }
        answer()
      }),
    stall(ms) {
      stalledUntil = world.now + ms
    },
    cut,
    freeze() {
      frozen = true
    },
    leave() {
      if (gone) return
      gone = true
      if (!frozen) world.after(chance.between(0, options.latencyMs), options.onGone)
    },
  }
}

const newline = 10
