import { comparePlaces, isAmong, type Place, type Truth, type Values, valueName } from './truth.ts'

/** What one reader makes of retained values: takes them for its state, and applies every later event to it. */
export interface ReadersState {
  /** The reader was told of a gap: what it has is what it is given now. */
  replace(at: Place, retained: Retained | undefined, isLost: boolean): void
  /** The reader has nothing, as a new one. */
  forget(): void
  apply(event: Place): void
  /** Compares what the reader has with what there is at its place. */
  check(at: Place): void
}

export type Retained = readonly { readonly id: string; readonly channel: string; readonly key: string }[]

export interface ReadersStateOptions {
  readonly truth: Truth
  readonly names: readonly string[]
  readonly retain: readonly string[]
  /** It is given every later event. */
  readonly isWhole: boolean
  accuse(message: string): void
  onChecked(): void
}

export function createReadersState(options: ReadersStateOptions): ReadersState {
  const { truth, names, retain, isWhole, accuse, onChecked } = options
  /** Undefined while the reader does not know everything. */
  let values: Values | undefined
  /** What had come to stand behind its place when it was given the values, and may be in them. */
  let ahead: readonly Place[] = []
  let isChecked = false

  const isRetained = (channel: string) => isAmong(names, channel) && isAmong(retain, channel)
  const valuesAt = (at: Place) =>
    new Map([...truth.valuesAt(names, at)].filter(([, { event }]) => isRetained(event?.channel ?? '')))

  /** On any line that its place is part of: the hub may know of a branch that its tail has yet to bring. */
  function valuesAhead(at: Place): Place[] {
    const changesValues = (place: Place) =>
      place.kind === 'invalidation' || (place.kind === 'event' && valueName(place) !== undefined)
    return truth.places.filter(
      (place) =>
        changesValues(place) &&
        isRetained(place.event?.channel ?? '') &&
        comparePlaces(place, at) > 0 &&
        truth.isOn(at, place.line),
    )
  }

  /** Values of its future are no fault. */
  function isBehind(at: Place): boolean {
    return ahead.some((place) => comparePlaces(place, at) > 0 && truth.isOn(at, place.line))
  }

  /**
   * What was read of a place that the log then lost is in the state, and the reader, whose own place still stands, is not
   * told of it: it was given the values at its place or later.
   */
  function isSpoiled(at: Place): boolean {
    return ahead.some((place) => place.lostAt < Infinity || !(truth.isOn(place, at.line) || truth.isOn(at, place.line)))
  }

  /** No key may be missing, and none be there again, of which no later event tells. */
  function checkGiven(at: Place, given: Values): void {
    const later = new Set(truth.eventsBetween(names, at, undefined).map(valueName))
    const isVoid = (place: Place) => truth.invalidationsBetween([place.event?.channel ?? ''], at, undefined).length > 0
    for (const [name, place] of valuesAt(at)) {
      if (given.get(name) !== place && !later.has(name) && !isVoid(place))
        accuse(`was given ${given.get(name)?.name} as ${name}, which is ${place.name}`)
    }
    const before = valuesAt(at)
    for (const [name, place] of given) {
      if (comparePlaces(place, at) <= 0 && before.get(name) !== place)
        accuse(`was given ${place.name} as ${name}, which is gone`)
    }
  }

  return {
    replace(at, retained, isLost) {
      values = undefined
      isChecked = false
      if (!retained || isLost) return
      ahead = valuesAhead(at)
      values = new Map()
      for (const { id, channel, key } of retained) {
        const place = truth.place(id)
        if (!place || place.event?.channel !== channel || place.event.key !== key || !isRetained(channel))
          accuse(`was given ${id} as ${key} of ${channel}`)
        else values.set(`${channel} ${key}`, place)
      }
      if (!isSpoiled(at)) checkGiven(at, values)
      if (!isWhole) values = undefined
    },
    forget() {
      values = undefined
      isChecked = false
    },
    apply(event) {
      const name = valueName(event)
      if (!values || name === undefined) return
      const had = values.get(name)
      // Retained values may be newer than the place they came with.
      if (!had || comparePlaces(event, had) > 0) {
        if (event.event?.forget) values.delete(name)
        else values.set(name, event)
      }
      // At a place that the log has lost by now, there is nothing to compare with.
      if (!isChecked && event.lostAt === Infinity) this.check(event)
    },
    check(at) {
      if (!values) return
      if (isSpoiled(at)) values = undefined
      if (!values || isBehind(at)) return
      isChecked = true
      onChecked()
      const truly = valuesAt(at)
      for (const name of new Set([...values.keys(), ...truly.keys()])) {
        const [has, is] = [values.get(name), truly.get(name)]
        if (has !== is) accuse(`has ${has?.name} as ${name}, which is ${is?.name}`)
      }
    },
  }
}
