import { origin, type Position } from '@rejoin/protocol'
import type { LogEvent, NewEvent } from '../contract.ts'
import { eventBytes, retainedBytes } from '../event-bytes.ts'

/**
 * An entry of the log, read from Redis. Its id in the stream is its position. It has one field: four words that the script
 * writes, a line break, and the body that the hub wrote. Channels and types contain no line break, and a key is JSON, which
 * contains none either. A space after the key says that the data is text. Hubs of earlier versions, which may share the log,
 * skip that space.
 */
export interface StoredEntry {
  readonly event: LogEvent
  /** True when the entry opens a branch. It has no event then. */
  readonly isBranch: boolean
}

/** Adds an append of one entry without a key to the arguments of the script. Returns the size of its body in characters. */
export function pushPlain(args: string[], entry: NewEvent): number {
  const body = bodyOf(kindOf(entry), entry)
  args.push(String(eventBytes(entry)), entry.channel, body)
  return body.length
}

/**
 * Adds an entry of an append with a head to the arguments of the script: channel, bytes and body. An entry with a key adds the
 * key and the bytes that it retains. Returns the size of the body in characters.
 */
export function pushEntry(args: string[], entry: NewEvent): number {
  const kind = kindOf(entry)
  const body = bodyOf(kind, entry)
  args.push(entry.channel, String(eventBytes(entry)), body)
  if (kind === 'k' || kind === 'f') args.push(entry.key as string, String(retainedBytes(entry)))
  return body.length
}

export function bodyOf(kind: Kind, { channel, type, data, content, key }: NewEvent): string {
  const keyText = key === undefined ? (content ? '""' : '') : JSON.stringify(key)
  return `${kind}${channel}\n${type}\n${keyText}${content ? ' ' : ''}\n${data}`
}

/**
 * An event: plain (`e`), with a key (`k`), that forgets its key (`f`), or live (`l`). Or an invalidation, an end, or a branch.
 */
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
  const type = names ? names.type(value, channelEnd + 1, typeEnd) : value.slice(channelEnd + 1, typeEnd)
  const data = value.slice(keyEnd + 1)
  // The position of a hybrid clock is never before the time. The entry stores how far it is ahead, which is mostly 0.
  const at = position.ms === 0 ? late : position.ms - late
  const previous =
    known && isAt(value, known.id, fedAfterEnd + 1, previousEnd)
      ? known.position
      : positionIn(value, fedAfterEnd + 1, previousEnd)
  const name = known?.channel ?? channel
  const isText = value.charCodeAt(keyEnd - 1) === space
  // A literal for JSON and one for text, as in `logEvent`: this runs tens of thousands of times a second. To add the field
  // afterwards makes it 3 % slower.
  const event: Writable<LogEvent> = isText
    ? { kind: kinds[kind], channel: name, type, data, position, at, previous, content: 'text' }
    : { kind: kinds[kind], channel: name, type, data, position, at, previous }
  if (kind !== 'e') {
    if (kind === 'k' || kind === 'f') event.key = JSON.parse(value.slice(typeEnd + 1, keyEnd)) as string
    if (kind === 'f') event.forget = true
    if (kind === 'l') event.live = true
  }
  if (known) {
    known.id = id
    known.position = position
  }
  return { event, isBranch: kind === 'b' }
}

/** Whether the entry names this id as the entry before it in the feed. */
export function isFedAfter(value: string, id: string): boolean {
  return isAt(value, id, 0, value.indexOf(' '))
}

/** The position that the entry names as the entry before it in the feed. */
export function fedAfterOf(value: string): Position {
  return positionIn(value, 0, value.indexOf(' '))
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

/** @param flat - ids and values in turn */
export function parseEvents(flat: readonly string[]): LogEvent[] {
  const events: LogEvent[] = []
  for (let index = 0; index < flat.length; index += 2) {
    events.push(parseEntry(flat[index] as string, flat[index + 1] as string).event)
  }
  return events
}

export function parsePosition(text: string): Position {
  return positionIn(text, 0, text.length)
}

/** Tells a position from a word. */
export function isPositionText(text: string): boolean {
  const first = text.charCodeAt(0)
  return first >= 48 && first <= 57
}

function positionIn(text: string, start: number, end: number): Position {
  const dash = text.indexOf('-', start)
  return { ms: digits(text, start, dash), seq: digits(text, dash + 1, end) }
}

/** Like `Number(text.slice(start, end))` in a third of the time. A tail spends much of its time here. */
function digits(text: string, start: number, end: number): number {
  let number = 0
  for (let index = start; index < end; index += 1) number = number * 10 + text.charCodeAt(index) - 48
  return number
}

export function positionText({ ms, seq }: Position): string {
  return `${ms}-${seq}`
}

/**
 * Channels, types and positions of earlier entries of the feed, for later entries to share. A hub holds events for a while, and
 * the garbage collector moves every string and object of theirs. So a name that an earlier event has is not made again.
 */
export interface InternedNames {
  channel(name: string): InternedChannel
  /** The type in `text` from `start` to `end`. */
  type(text: string, start: number, end: number): string
}

export interface InternedChannel {
  readonly channel: string
  /** The id and the position of the channel's newest entry, which the next entry mostly names as `previous`. */
  id: string
  position: Position
}

// With more channels than these, the next event is seldom of a recent channel. A log has few types.
const most = { channels: 4096, types: 256 }

export function createInternedNames(): InternedNames {
  const channels = new Map<string, InternedChannel>()
  const types = new Map<string, string>()
  let lastType = ''

  return {
    channel(name) {
      const known = channels.get(name)
      if (known) return known
      if (channels.size >= most.channels) channels.clear()
      const channel = copyOf(name)
      const first = { channel, id: '', position: origin }
      channels.set(channel, first)
      return first
    },
    type(text, start, end) {
      if (end - start === lastType.length && text.startsWith(lastType, start)) return lastType
      const type = text.slice(start, end)
      const known = types.get(type)
      if (known === undefined) {
        if (types.size >= most.types) types.clear()
        lastType = copyOf(type)
        types.set(lastType, lastType)
      } else {
        lastType = known
      }
      return lastType
    },
  }
}

/** A slice of an entry would keep the whole entry in memory, so names are copied. */
function copyOf(name: string): string {
  return Buffer.from(name).toString()
}
