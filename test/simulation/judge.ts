import { readFrames, type WireFrame } from './frames.ts'
import { comparePlaces, type Place, type Truth } from './truth.ts'
import type { World } from './virtual-world.ts'

/** What has to hold in every history. */
export const invariants = {
  'unannounced-gap': 'no reader passes over an event without being told',
  'lost-write': 'once all faults are over, every reader gets what it is owed, or is told',
  'false-gap': 'no reader is told of a gap while everything after its cursor is held',
  duplicate: 'no event reaches a reader twice, and no stream holds one twice',
  order: 'events come in the order of the log',
  'moved-cursor': 'hello never moves the cursor of a reader that sent one',
  'stale-snapshot': 'a snapshot holds everything up to the place it is said to stand at',
  'wrong-id': 'an id is that of its event, and of a place that the log has assigned',
  'published-twice': 'one idempotency key makes one event',
  'private-leak': 'nothing is sent to a reader whose rights this hub knows to be gone',
  'torn-frame': 'every write is made of whole frames',
} as const

export type Invariant = keyof typeof invariants

export interface Violation {
  readonly invariant: Invariant
  readonly message: string
  readonly at: number
}

/** What a reader has asked for. */
export interface Wanted {
  readonly channels: readonly string[]
  /** All, when there are none. */
  readonly types: readonly string[]
}

export interface Judge {
  readonly violations: readonly Violation[]
  accuse(invariant: Invariant, message: string): void
  /** Follows what one receiver is given: a connection what the hub writes to it, a reader what its handlers get. */
  follow(who: string, wanted: Wanted): Receipts
  /** Judges what a hub writes to one connection. */
  watch(connection: Connection): (bytes: Uint8Array) => void
}

export interface Connection {
  readonly who: string
  readonly wanted: Wanted
  /** The cursor that the hub saw. */
  readonly requested: string | null
  /** Whether its rights are gone as far as this hub has been told. */
  isRevoked(): boolean
  onFrame(frame: WireFrame): void
}

/** One line of receipts, from a place on. */
export interface Receipts {
  /** Everything wanted up to here was given, or was told to be gone. */
  readonly place: Place | undefined
  start(place: Place): void
  event(place: Place): void
  /** An id without an event: everything before it must have been given. */
  mark(place: Place): void
  gap(place: Place): void
  /** What is owed now and was not given. */
  missing(): Place[]
  /** The place was lost by the log, so that a gap has to be announced. */
  readonly isStranded: boolean
}

export function createJudge(world: World, truth: Truth): Judge {
  const violations: Violation[] = []

  function accuse(invariant: Invariant, message: string): void {
    violations.push({ invariant, message, at: world.now })
  }

  function follow(who: string, { channels, types }: Wanted): Receipts {
    let place: Place | undefined
    let given = new Set<Place>()
    const isWanted = (event: Place) => types.length === 0 || types.includes((event.event as { type: string }).type)

    const isLost = (of: Place) => of.lostAt <= world.now || of.log !== truth.places.at(-1)?.log

    function owedBefore(end: Place | undefined): Place[] {
      if (!place) return []
      return truth
        .eventsBetween(channels, place, end)
        .filter((event) => isWanted(event) && !isLost(event) && !given.has(event))
    }

    function pass(end: Place): void {
      const owed = owedBefore(end)
      if (owed.length > 0) accuse('unannounced-gap', `${who} came to ${nameOf(end)} without ${owed.map(nameOf).join()}`)
      else if (place && isLost(place) && !isLost(end)) {
        accuse('unannounced-gap', `${who} came from ${nameOf(place)}, which the log has lost, to ${nameOf(end)}`)
      }
      place = end
    }

    return {
      get place() {
        return place
      },
      get isStranded() {
        return place !== undefined && isLost(place)
      },
      start(at) {
        place = at
      },
      event(event) {
        if (given.has(event)) accuse('duplicate', `${who} got ${nameOf(event)} again`)
        else if (place && comparePlaces(event, place) <= 0) {
          accuse('order', `${who} got ${nameOf(event)} when it was at ${nameOf(place)}`)
        } else pass(event)
        given.add(event)
      },
      mark(at) {
        if (!place || comparePlaces(at, place) > 0) pass(at)
      },
      gap(at) {
        place = at
        given = new Set()
      },
      missing: () => owedBefore(undefined),
    }
  }

  function watch({ who, wanted, requested, isRevoked, onFrame }: Connection): (bytes: Uint8Array) => void {
    const receipts = follow(who, wanted)
    const decoder = new TextDecoder()

    function placeOf(id: string | undefined): Place | undefined {
      const place = id === undefined ? undefined : truth.place(id)
      if (id !== undefined && !place) accuse('wrong-id', `${who} was given ${id}, which is no place of the log`)
      return place
    }

    function hello(id: string | undefined): void {
      if (id === undefined) return
      if (requested !== null && id !== requested) {
        accuse('moved-cursor', `${who} came with ${requested} and was greeted with ${id}`)
        return
      }
      const place = placeOf(id)
      if (place) receipts.start(place)
    }

    function sync(data: string, id: string | undefined): void {
      const gap = JSON.parse(data) as { reason: string; requested: string; snapshot?: { upTo: string } }
      if (!isFounded(gap.reason, gap.requested, wanted.channels)) {
        accuse('false-gap', `${who} was told ${gap.reason} at ${gap.requested}`)
      }
      const place = placeOf(id)
      if (!place) return
      if (gap.snapshot) checkSnapshot(gap.snapshot.upTo, place)
      receipts.gap(place)
    }

    function checkSnapshot(upTo: string, place: Place): void {
      const state = placeOf(upTo)
      if (!state) return
      const left = truth
        .eventsBetween(wanted.channels, state, undefined)
        .filter((event) => comparePlaces(event, place) <= 0 && event.lostAt > world.now)
      if (left.length > 0)
        accuse('stale-snapshot', `${who} has ${left.map(nameOf).join()} neither as state nor to come`)
    }

    function event(data: string, id: string | undefined): void {
      const place = placeOf(id)
      if (!place) return
      if (place.event?.data !== data) accuse('wrong-id', `${who} got ${data} as ${id}`)
      if (!wanted.channels.includes(place.event?.channel ?? '')) accuse('private-leak', `${who} got ${data}, unasked`)
      if (isRevoked()) accuse('private-leak', `${who} got ${data} after its rights were gone`)
      receipts.event(place)
    }

    return (bytes) => {
      const frames = readFrames(decoder.decode(bytes))
      if (!frames) accuse('torn-frame', `${who} was written ${decoder.decode(bytes)}`)
      for (const frame of frames ?? []) {
        onFrame(frame)
        const { type, id, data } = frame
        if (data === undefined) continue
        if (type === 'hello') hello(id)
        else if (type === 'sync-required') sync(data, id)
        else if (type === 'checkpoint') {
          const place = placeOf(id)
          if (place) receipts.mark(place)
        } else if (type !== 'close') event(data, id)
      }
    }
  }

  /** Whether a reader may be told of a gap after `requested` now. */
  function isFounded(reason: string, requested: string, channels: readonly string[]): boolean {
    const cursor = truth.place(requested)
    if (!cursor) return reason !== 'expired' && reason !== 'forced'
    const isVoid = cursor.lostAt <= world.now || cursor.log !== truth.places.at(-1)?.log
    switch (reason) {
      case 'expired':
        return isVoid || truth.eventsBetween(channels, cursor, undefined).some((event) => event.trimmedAt <= world.now)
      case 'forced':
        return truth.places.some(
          (place) =>
            place.kind === 'invalidation' &&
            channels.includes(place.event?.channel ?? '') &&
            comparePlaces(place, cursor) > 0,
        )
      case 'epoch':
      case 'ahead':
        return isVoid
      case 'replay-limit':
        return true
      default:
        return false
    }
  }

  return { violations, accuse, follow, watch }
}

export function nameOf(place: Place): string {
  return place.name ?? `${place.kind} ${place.position.ms}.${place.position.seq}`
}
