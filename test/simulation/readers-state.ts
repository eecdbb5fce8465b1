import { compareEntries, type Entry, isAmong, type Truth, type Values, valueName } from './truth.ts'

/** What one reader makes of retained values: takes them for its state, and applies every later event to it. */
export interface ReadersState {
  /** The reader was told of a gap: what it has is what it is given now. */
  replace(at: Entry, retained: Retained | undefined, isLost: boolean): void
  /** The reader has nothing, as a new one. */
  forget(): void
  apply(event: Entry): void
  /** Compares what the reader has with what there is at its entry. */
  check(at: Entry): void
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
  /** What had come to stand behind its entry when it was given the values, and may be in them. */
  let ahead: readonly Entry[] = []
  let isChecked = false

  const isRetained = (channel: string) => isAmong(names, channel) && isAmong(retain, channel)
  const valuesAt = (at: Entry) =>
    new Map([...truth.valuesAt(names, at)].filter(([, { event }]) => isRetained(event?.channel ?? '')))

  /** On any line that its entry is part of: the hub may know of a branch that its tail has yet to bring. */
  function valuesAhead(at: Entry): Entry[] {
    const changesValues = (entry: Entry) =>
      entry.kind === 'invalidation' || (entry.kind === 'event' && valueName(entry) !== undefined)
    return truth.entries.filter(
      (entry) =>
        changesValues(entry) &&
        isRetained(entry.event?.channel ?? '') &&
        compareEntries(entry, at) > 0 &&
        truth.isOn(at, entry.line),
    )
  }

  /** Values of its future are no fault. */
  function isBehind(at: Entry): boolean {
    return ahead.some((entry) => compareEntries(entry, at) > 0 && truth.isOn(at, entry.line))
  }

  /**
   * What was read of an entry that the log then lost is in the state, and the reader, whose own entry still stands, is not
   * told of it: it was given the values at its entry or later.
   */
  function isSpoiled(at: Entry): boolean {
    return ahead.some((entry) => entry.lostAt < Infinity || !(truth.isOn(entry, at.line) || truth.isOn(at, entry.line)))
  }

  /** No key may be missing, and none be there again, of which no later event tells. */
  function checkGiven(at: Entry, given: Values): void {
    const later = new Set(truth.eventsBetween(names, at, undefined).map(valueName))
    const isVoid = (entry: Entry) => truth.invalidationsBetween([entry.event?.channel ?? ''], at, undefined).length > 0
    for (const [name, entry] of valuesAt(at)) {
      if (given.get(name) !== entry && !later.has(name) && !isVoid(entry))
        accuse(`was given ${given.get(name)?.name} as ${name}, which is ${entry.name}`)
    }
    const before = valuesAt(at)
    for (const [name, entry] of given) {
      if (compareEntries(entry, at) <= 0 && before.get(name) !== entry)
        accuse(`was given ${entry.name} as ${name}, which is gone`)
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
        const entry = truth.entry(id)
        if (!entry || entry.event?.channel !== channel || entry.event.key !== key || !isRetained(channel))
          accuse(`was given ${id} as ${key} of ${channel}`)
        else values.set(`${channel} ${key}`, entry)
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
      // Retained values may be newer than the entry they came with.
      if (!had || compareEntries(event, had) > 0) {
        if (event.event?.forget) values.delete(name)
        else values.set(name, event)
      }
      // At an entry that the log has lost by now, there is nothing to compare with.
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
