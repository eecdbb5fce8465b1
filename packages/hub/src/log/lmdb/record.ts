import type { Position } from '@rejoin/protocol'
import type { LogEvent } from '../contract.ts'
import { type ByteReader, ByteWriter, unseal } from './bytes.ts'
import { positionOf } from './keys.ts'

/**
 * The events that one commit added to one channel, as one value of the store. One by one they would cost a key, a search
 * and a checksum each: packed, 256 publishers write and read several times faster.
 *
 * Where the first event stands is the key's to say. The texts stand together at the end, so that they are decoded by one
 * call and cut apart by their lengths.
 */
export function sealRecord(key: Uint8Array, events: readonly LogEvent[]): Buffer {
  const first = events[0] as LogEvent
  const types = [...new Set(events.map((event) => event.type))]
  writer.number(events.length)
  writer.position(first.previous)
  writer.number(types.length)
  for (const type of types) writer.text(type)
  let before = first.position
  for (const { position, at, type, data } of events) {
    const step = position.ms - before.ms
    writer.number(step)
    writer.number(step === 0 ? position.seq - before.seq : position.seq)
    writer.signed(at - position.ms)
    if (types.length > 1) writer.number(types.indexOf(type))
    writer.number(data.length)
    before = position
  }
  return writer.seal(key, events.length === 1 ? first.data : events.map((event) => event.data).join(''))
}

const writer = new ByteWriter()

/** A record whose checksum is right. Everything but the texts is taken apart when it is opened. */
export interface StoredRecord {
  /** Where the channel's last event before this record stands. */
  readonly previous: Position
  readonly places: readonly StoredPlace[]
  /** The events from this index on, up to, but not including, another. */
  events(channel: string, from: number, to: number): LogEvent[]
}

export interface StoredPlace {
  readonly position: Position
  readonly at: number
  readonly type: string
  /** Of the data, in UTF-16 units. */
  readonly length: number
}

/** Undefined when the record is damaged. */
export function openRecord(key: Uint8Array, sealed: Buffer): StoredRecord | undefined {
  const reader = unseal(key, sealed)
  if (!reader) return undefined
  const count = reader.number()
  const previous = reader.position()
  const types = Array.from({ length: reader.number() }, () => reader.text())
  const places = readPlaces(reader, count, types, positionOf(key))
  return {
    previous,
    places,
    events(channel, from, to) {
      const text = textFrom(sealed, reader.at, places)
      const events: LogEvent[] = []
      let start = 0
      let before = previous
      for (let index = 0; index < to; index += 1) {
        const { position, at, type, length } = places[index] as StoredPlace
        if (index >= from) {
          const data = text.slice(start, start + length)
          events.push({ kind: 'event', channel, type, data, position, at, previous: before })
        }
        start += length
        before = position
      }
      return events
    },
  }
}

function readPlaces(reader: ByteReader, count: number, types: readonly string[], first: Position): StoredPlace[] {
  const places: StoredPlace[] = []
  let { ms, seq } = first
  for (let index = 0; index < count; index += 1) {
    const step = reader.number()
    const count = reader.number()
    seq = step === 0 ? seq + count : count
    ms += step
    const at = ms + reader.signed()
    const type = types[types.length > 1 ? reader.number() : 0] as string
    places.push({ position: { ms, seq }, at, type, length: reader.number() })
  }
  return places
}

function textFrom(sealed: Buffer, start: number, places: readonly StoredPlace[]): string {
  const units = places.reduce((sum, place) => sum + place.length, 0)
  // As many bytes as units: every character is ASCII, and Latin-1 is read at the speed of a copy.
  return sealed.toString(sealed.length - start === units ? 'latin1' : 'utf8', start)
}

/** Of an event or a stored place: what it counts in a channel's window. */
export function costOf({ type, length }: { readonly type: string; readonly length: number }): number {
  return type.length + length
}
