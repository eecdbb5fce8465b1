import type { Position } from '@rejoin/protocol'
import type { LogEvent, NewEvent } from '../contract.ts'
import { eventBytes, retainedBytes } from '../event-bytes.ts'
import type { InternedNames } from './interned-names.ts'

/**
 * How an entry stands in Redis: under its position as id, in one field, four words that the script writes, a line break, and
 * what the hub gave it. Neither channels nor types hold a line break, and a key is written as JSON, which has none either. A
 * space behind the key tells that the data is text: hubs of earlier versions, which may share the log, read past it.
 */
export interface StoredEntry {
  readonly event: LogEvent
  /** Opens a branch; there is no event then. */
  readonly isBranch: boolean
}

/** Adds an append of one entry that has no key to the arguments of the script. Gives its size in characters. */
export function pushPlain(args: string[], entry: NewEvent): number {
  const body = bodyOf(kindOf(entry), entry)
  args.push(String(eventBytes(entry)), entry.channel, body)
  return body.length
}

/**
 * Adds an entry to the arguments of the script, behind a head: channel, cost, what is stored, and with a key that and the cost
 * of keeping it. Gives its size in characters.
 */
export function pushEntry(args: string[], entry: NewEvent): number {
  const kind = kindOf(entry)
  const body = bodyOf(kind, entry)
  args.push(entry.channel, String(eventBytes(entry)), body)
  if (kind === 'k' || kind === 'f') args.push(entry.key as string, String(retainedBytes(entry)))
  return body.length
}

export function bodyOf(kind: Kind, { channel, type, data, content, key }: NewEvent): string {
  const keyText = content ? `${JSON.stringify(key ?? '')} ` : key === undefined ? '' : JSON.stringify(key)
  return `${kind}${channel}\n${type}\n${keyText}\n${data}`
}

/** A plain event, one with a key, one that forgets it, a live one; an invalidation, the end (`z`), or a branch. */
type Kind = 'e' | 'k' | 'f' | 'l' | 'i' | 'z' | 'b'

function kindOf({ live, key, forget }: NewEvent): Kind {
  if (live) return 'l'
  if (key === undefined) return 'e'
  return forget ? 'f' : 'k'
}

export function parseEntry(id: string, value: string, names?: InternedNames): StoredEntry {
  const position = parsePosition(id)
  const fedAfterEnd = value.indexOf(' ')
  const previousEnd = value.indexOf(' ', fedAfterEnd + 1)
  const lateEnd = value.indexOf(' ', previousEnd + 1)
  const headerEnd = value.indexOf('\n', lateEnd + 1)
  const late = digits(value, previousEnd + 1, lateEnd)
  const kind = value.charAt(headerEnd + 1) as Kind
  const channelEnd = value.indexOf('\n', headerEnd + 1)
  const typeEnd = value.indexOf('\n', channelEnd + 1)
  const keyEnd = value.indexOf('\n', typeEnd + 1)
  const channel = value.slice(headerEnd + 2, channelEnd)
  const known = names?.channel(channel)
  // At tens of thousands a second, one object that is made at once costs a third of one that is put together.
  const event: Writable<LogEvent> = {
    kind: kinds[kind],
    channel: known?.channel ?? channel,
    type: names ? names.type(value, channelEnd + 1, typeEnd) : value.slice(channelEnd + 1, typeEnd),
    data: value.slice(keyEnd + 1),
    position,
    // A hybrid clock is never before its time; what it is ahead by is stored, which is mostly nothing.
    at: position.ms === 0 ? late : position.ms - late,
    previous:
      known && isAt(value, known.id, fedAfterEnd + 1, previousEnd)
        ? known.position
        : placeIn(value, fedAfterEnd + 1, previousEnd),
  }
  if (kind === 'k' || kind === 'f') event.key = JSON.parse(value.slice(typeEnd + 1, keyEnd)) as string
  if (value.charCodeAt(keyEnd - 1) === space) event.content = 'text'
  if (kind === 'f') event.forget = true
  if (kind === 'l') event.live = true
  if (known) {
    known.id = id
    known.position = position
  }
  return { event, isBranch: kind === 'b' }
}

/** Whether the entry before it in the feed is the one with this id. */
export function isFedAfter(value: string, id: string): boolean {
  return isAt(value, id, 0, value.indexOf(' '))
}

/** The position of the entry before it in the feed. */
export function fedAfterOf(value: string): Position {
  return placeIn(value, 0, value.indexOf(' '))
}

function isAt(text: string, part: string, start: number, end: number): boolean {
  return end - start === part.length && text.startsWith(part, start)
}

const space = 32

type Writable<T> = { -readonly [K in keyof T]: T[K] }

const kinds: Record<Kind, LogEvent['kind']> = {
  e: 'event',
  k: 'event',
  f: 'event',
  l: 'live',
  i: 'invalidation',
  z: 'end',
  b: 'event',
}

/** As a list of ids and values in turn. */
export function parseEvents(flat: readonly string[]): LogEvent[] {
  const events: LogEvent[] = []
  for (let index = 0; index < flat.length; index += 2) {
    events.push(parseEntry(flat[index] as string, flat[index + 1] as string).event)
  }
  return events
}

export function parsePosition(text: string): Position {
  return placeIn(text, 0, text.length)
}

/** Or a word. */
export function isPositionText(text: string): boolean {
  const first = text.charCodeAt(0)
  return first >= 48 && first <= 57
}

function placeIn(text: string, start: number, end: number): Position {
  const dash = text.indexOf('-', start)
  return { ms: digits(text, start, dash), seq: digits(text, dash + 1, end) }
}

/** Like `Number` of that part, without making it: a third of its time, of which a tail spends much. */
function digits(text: string, start: number, end: number): number {
  let number = 0
  for (let index = start; index < end; index += 1) number = number * 10 + text.charCodeAt(index) - 48
  return number
}

export function positionText({ ms, seq }: Position): string {
  return `${ms}-${seq}`
}
