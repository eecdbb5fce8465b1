import type { Position } from '@rejoin/protocol'
import type { Entry, Store } from '../files/store.ts'
import { ByteWriter, unseal } from '../format/bytes.ts'
import { agedNumberOf, agedPositionOf, ageKey, ageRange } from '../format/keys.ts'

/**
 * A channel in the order of age, by which a log with a budget finds its oldest events. A channel stands at or before its oldest
 * event. To move the entry with every trim would cost each publish two writes, so the channel is moved when its turn has come.
 */
export interface AgedChannel {
  readonly key: Buffer
  readonly position: Position
  readonly number: number
  /** Undefined when the entry is damaged. */
  readonly name: string | undefined
  /** The position of the next channel; undefined for the last one. */
  readonly next: Position | undefined
}

export function agedEntry(position: Position, channelNumber: number, name: string): Entry {
  const key = ageKey(position, channelNumber)
  writer.text(name)
  return { key, value: writer.seal(key) }
}

const writer = new ByteWriter()

/** The caller has to walk it within one turn, because it holds a snapshot of the store. */
export function* channelsByAge(store: Store): Generator<AgedChannel> {
  let before: Omit<AgedChannel, 'next'> | undefined
  for (const { key, value } of store.range(ageRange.start, ageRange.end)) {
    const position = agedPositionOf(key)
    if (before) yield { ...before, next: position }
    before = { key, position, number: agedNumberOf(key), name: unseal(key, value)?.text() }
  }
  if (before) yield { ...before, next: undefined }
}
