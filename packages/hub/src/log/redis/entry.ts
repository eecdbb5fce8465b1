import type { Position } from '@rejoin/protocol'
import { byteCost } from '../channel-ring.ts'
import type { LogEvent, NewEvent } from '../contract.ts'
import { retainedCost } from '../retained.ts'

/**
 * How an entry stands in Redis: under its place as id, in one field, four words that the script writes, a line break, and
 * what the hub gave it. Neither channels nor types hold a line break, and a key is written as JSON, which has none either.
 */
export interface StoredEntry {
  readonly event: LogEvent
  /** The place of the entry before it in the feed. */
  readonly fedAfter: Position
  /** Opens a branch; there is no event then. */
  readonly isBranch: boolean
}

/** An entry as arguments of the script: channel, kind, cost, key, cost of keeping it, and what is stored. */
export function entryArguments(entry: NewEvent): string[] {
  const kind = kindOf(entry)
  const isKept = kind === 'k' || kind === 'f'
  return [
    entry.channel,
    kind,
    String(byteCost(entry)),
    isKept ? (entry.key as string) : '',
    isKept ? String(retainedCost(entry)) : '0',
    bodyOf(kind, entry),
  ]
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

export function parseEntry(id: string, value: string): StoredEntry {
  const position = parsePlace(id)
  const headerEnd = value.indexOf('\n')
  const [fedAfter = '', previous = '', late = ''] = value.slice(0, headerEnd).split(' ', 3)
  const kind = value.charAt(headerEnd + 1) as Kind
  const channelEnd = value.indexOf('\n', headerEnd + 1)
  const typeEnd = value.indexOf('\n', channelEnd + 1)
  const keyEnd = value.indexOf('\n', typeEnd + 1)
  const event: LogEvent = {
    kind: kinds[kind],
    channel: value.slice(headerEnd + 2, channelEnd),
    type: value.slice(channelEnd + 1, typeEnd),
    data: value.slice(keyEnd + 1),
    position,
    // A hybrid clock is never before its time; what it is ahead by is stored, which is mostly nothing.
    at: position.ms === 0 ? Number(late) : position.ms - Number(late),
    previous: parsePlace(previous),
    ...(keyEnd > typeEnd + 1 ? { key: JSON.parse(value.slice(typeEnd + 1, keyEnd)) as string } : {}),
    ...(kind === 'f' ? { forget: true } : {}),
    ...(kind === 'l' ? { live: true } : {}),
  }
  return { event, fedAfter: parsePlace(fedAfter), isBranch: kind === 'b' }
}

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
  const dash = text.indexOf('-')
  return { ms: Number(text.slice(0, dash)), seq: Number(text.slice(dash + 1)) }
}

export function placeText({ ms, seq }: Position): string {
  return `${ms}-${seq}`
}
