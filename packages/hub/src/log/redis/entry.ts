import type { Position } from '@rejoin/protocol'
import { byteCost } from '../channel-ring.ts'
import type { LogEvent, NewEvent } from '../contract.ts'
import { retainedCost } from '../retained.ts'
import type { Familiar } from './familiar.ts'

/**
 * How an entry stands in Redis: under its place as id, in one field, four words that the script writes, a line break, and
 * what the hub gave it. Neither channels nor types hold a line break, and a key is written as JSON, which has none either.
 */
export interface StoredEntry {
  readonly event: LogEvent
  /** Opens a branch; there is no event then. */
  readonly isBranch: boolean
}

/** Adds an append of one entry that has no key to the arguments of the script. Gives its size in characters. */
export function pushPlain(args: string[], entry: NewEvent): number {
  const body = bodyOf(kindOf(entry), entry)
  args.push(String(byteCost(entry)), entry.channel, body)
  return body.length
}

/**
 * Adds an entry to the arguments of the script, behind a head: channel, cost, what is stored, and with a key that and the cost
 * of keeping it. Gives its size in characters.
 */
export function pushEntry(args: string[], entry: NewEvent): number {
  const kind = kindOf(entry)
  const body = bodyOf(kind, entry)
  args.push(entry.channel, String(byteCost(entry)), body)
  if (kind === 'k' || kind === 'f') args.push(entry.key as string, String(retainedCost(entry)))
  return body.length
}

export function bodyOf(kind: Kind, { channel, type, data, key }: NewEvent): string {
  return `${kind}${channel}\n${type}\n${key === undefined ? '' : JSON.stringify(key)}\n${data}`
}

/** A plain event, one with a key, one that forgets it, a live one; an invalidation, the end (`z`), or a branch. */
type Kind = 'e' | 'k' | 'f' | 'l' | 'i' | 'z' | 'b'

function kindOf({ live, key, forget }: NewEvent): Kind {
  if (live) return 'l'
  if (key === undefined) return 'e'
  return forget ? 'f' : 'k'
}

export function parseEntry(id: string, value: string, familiar?: Familiar): StoredEntry {
  const position = parsePlace(id)
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
  const known = familiar?.channel(channel)
  // At tens of thousands a second, one object that is made at once costs a third of one that is put together.
  const event: Writable<LogEvent> = {
    kind: kinds[kind],
    channel: known?.channel ?? channel,
    type: familiar ? familiar.type(value, channelEnd + 1, typeEnd) : value.slice(channelEnd + 1, typeEnd),
    data: value.slice(keyEnd + 1),
    position,
    // A hybrid clock is never before its time; what it is ahead by is stored, which is mostly nothing.
    at: position.ms === 0 ? late : position.ms - late,
    previous:
      known && isAt(value, known.id, fedAfterEnd + 1, previousEnd)
        ? known.position
        : placeIn(value, fedAfterEnd + 1, previousEnd),
  }
  if (keyEnd > typeEnd + 1) event.key = JSON.parse(value.slice(typeEnd + 1, keyEnd)) as string
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

/** The place of the entry before it in the feed. */
export function fedAfterOf(value: string): Position {
  return placeIn(value, 0, value.indexOf(' '))
}

function isAt(text: string, part: string, start: number, end: number): boolean {
  return end - start === part.length && text.startsWith(part, start)
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

const kinds: Record<Kind, LogEvent['kind']> = {
  ...{ e: 'event', k: 'event', f: 'event', l: 'live' },
  ...{ i: 'invalidation', z: 'end', b: 'event' },
}

/** As a list of ids and values in turn. */
export function parseEvents(flat: readonly string[]): LogEvent[] {
  const events: LogEvent[] = []
  for (let index = 0; index < flat.length; index += 2) {
    events.push(parseEntry(flat[index] as string, flat[index + 1] as string).event)
  }
  return events
}

export function parsePlace(text: string): Position {
  return placeIn(text, 0, text.length)
}

/** Or a word. */
export function isPlace(text: string): boolean {
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

export function placeText({ ms, seq }: Position): string {
  return `${ms}-${seq}`
}
