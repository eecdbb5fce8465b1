import { origin, type Position } from '@rejoin/protocol'
import type { LogEvent } from '../../contract.ts'
import { eventBytes } from '../../event-bytes.ts'
import { logEvent } from '../../log-event.ts'
import type { Entry } from '../files/store.ts'
import { type ByteReader, ByteWriter, unseal } from './bytes.ts'
import { positionOf, recordKey, retainedKeyOf } from './keys.ts'

/** The events that one commit added to one channel: one record, or several when the events are many. */
export function sealRecords(channelNumber: number, events: readonly LogEvent[]): Entry[] {
  const entries: Entry[] = []
  let start = 0
  let units = 0
  for (const [index, { data }] of events.entries()) {
    units += data.length
    const end = index + 1
    if (end < events.length && units < recordUnits && end - start < recordEvents) continue
    const key = recordKey(channelNumber, (events[start] as LogEvent).position)
    entries.push({ key, value: sealRecord(key, events.slice(start, end)) })
    start = end
    units = 0
  }
  return entries
}

// A reader in the middle of a record decodes the whole record, and the store keeps a whole record while one of its events is left.
const recordUnits = 64 * 1024
const recordEvents = 1024

/**
 * The events that one commit added to one channel, as one value of the store. Stored one by one, each event would cost a key, a
 * search and a checksum. Packed, 256 publishers write and read several times faster.
 *
 * The key holds the position of the first event. The texts stand together at the end, so that one call decodes them all; their
 * lengths tell where to cut.
 */
function sealRecord(key: Uint8Array, events: readonly LogEvent[]): Buffer {
  const first = events[0] as LogEvent
  const types = [...new Set(events.map(storedTypeOf))]
  writer.number(events.length)
  writer.position(first.previous)
  writer.number(types.length)
  for (const type of types) writer.text(type)
  let before = first.position
  for (const event of events) {
    const { position, at, data } = event
    const step = position.ms - before.ms
    writer.number(step)
    writer.number(step === 0 ? position.seq - before.seq : position.seq)
    writer.signed(at - position.ms)
    if (types.length > 1) writer.number(types.indexOf(storedTypeOf(event)))
    writer.number(data.length)
    before = position
  }
  return writer.seal(key, events.length === 1 ? first.data : events.map((event) => event.data).join(''))
}

const writer = new ByteWriter()

/** A record with a correct checksum. Its stamps are decoded, its texts are not yet. */
export interface StoredRecord {
  /** The position of the channel's last event before this record. */
  readonly previous: Position
  readonly stamps: readonly StoredStamp[]
  /** The events from index `from` up to, but not including, index `to`. */
  events(channel: string, from: number, to: number): LogEvent[]
}

export interface StoredStamp extends StoredType {
  readonly position: Position
  readonly at: number
  /** The size of the event in its channel's window. */
  readonly bytes: number
  /** The length of the data in UTF-16 units. */
  readonly length: number
}

/** Undefined when the record is damaged. */
export function openRecord(key: Uint8Array, sealed: Buffer): StoredRecord | undefined {
  const reader = unseal(key, sealed)
  if (!reader) return undefined
  const count = reader.number()
  const previous = reader.position()
  const types = Array.from({ length: reader.number() }, () => readStoredType(reader.text()))
  const stamps = readStamps(reader, count, types, positionOf(key))
  const units = stamps.reduce((sum, { length }) => sum + length, 0)
  // With as many bytes as units, every character is ASCII. Read as Latin-1, it decodes at the speed of a copy.
  const isAscii = sealed.length - reader.at === units
  const readText = () => sealed.toString(isAscii ? 'latin1' : 'utf8', reader.at)
  const decoded = isAscii ? undefined : readText()
  if (decoded !== undefined) countBytes(stamps, decoded)
  return {
    previous,
    stamps,
    events(channel, from, to) {
      const text = decoded ?? readText()
      const events: LogEvent[] = []
      let start = 0
      let before = previous
      for (let index = 0; index < to; index += 1) {
        const stamp = stamps[index] as StoredStamp
        const end = start + stamp.length
        if (index >= from) events.push(logEvent(channel, stamp, text.slice(start, end), stamp, before))
        start = end
        before = stamp.position
      }
      return events
    },
  }
}

/** Counts a byte for each unit of text, as in ASCII. `countBytes` corrects that for other text. */
function readStamps(reader: ByteReader, count: number, types: readonly StoredType[], first: Position): Counted[] {
  const sizes = types.map(({ type }) => Buffer.byteLength(type))
  const stamps: Counted[] = []
  let { ms, seq } = first
  for (let index = 0; index < count; index += 1) {
    const step = reader.number()
    const count = reader.number()
    seq = step === 0 ? seq + count : count
    ms += step
    const at = ms + reader.signed()
    const which = types.length > 1 ? reader.number() : 0
    const length = reader.number()
    const bytes = (sizes[which] as number) + length
    const { type, content } = types[which] as StoredType
    const position = { ms, seq }
    stamps.push(content ? { position, at, type, length, bytes, content } : { position, at, type, length, bytes })
  }
  return stamps
}

type Counted = StoredStamp & { bytes: number }

/** Counts the bytes of text that is not ASCII, in which a unit may be several bytes. */
function countBytes(stamps: readonly Counted[], text: string): void {
  let start = 0
  for (const stamp of stamps) {
    const end = start + stamp.length
    stamp.bytes = eventBytes({ type: stamp.type, data: text.slice(start, end) })
    start = end
  }
}

/** The newest event of a key, as it is stored beside the records of its channel. */
export function sealRetained(key: Uint8Array, event: LogEvent): Buffer {
  const { position, at, data } = event
  writer.position(position)
  writer.signed(at - position.ms)
  writer.text(storedTypeOf(event))
  return writer.seal(key, data)
}

/** Undefined when the value is damaged. */
export function openRetained(key: Uint8Array, sealed: Buffer, channel: string): LogEvent | undefined {
  const reader = unseal(key, sealed)
  if (!reader) return undefined
  const position = reader.position()
  const at = position.ms + reader.signed()
  const stored = readStoredType(reader.text())
  const data = sealed.toString('utf8', reader.at)
  return { kind: 'event', channel, key: retainedKeyOf(key), ...stored, data, position, at, previous: origin }
}

/**
 * The type of an event as it is stored, with a tab in front when the data is text. No type contains a tab. A record names each
 * type once, so JSON costs nothing and text one byte. Records of earlier versions read the same way.
 */
function storedTypeOf({ type, content }: Pick<LogEvent, 'type' | 'content'>): string {
  return content === undefined ? type : `\t${type}`
}

function readStoredType(stored: string): StoredType {
  return stored.startsWith('\t') ? { type: stored.slice(1), content: 'text' } : { type: stored }
}

interface StoredType {
  readonly type: string
  readonly content?: 'text'
}
