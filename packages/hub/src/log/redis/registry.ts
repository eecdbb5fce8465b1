import type { Position } from '@rejoin/protocol'
import type { Window } from '../contract.ts'
import { parsePosition } from './entry.ts'
import type { Reply } from './link.ts'

/** Runs a step with what every step is given: how far this hub has seen, and what time it is. */
export type Ask = (step: string, ...args: string[]) => Promise<Reply>

/** What is known of a channel: its window, and its newest position, which outlives its events. */
export interface KnownChannel extends Window {
  /** Of its last event or invalidation. */
  readonly newestPosition: Position
  readonly invalidatedThrough: Position
  /** What its oldest event names as the one before it; without events, its newest position. */
  readonly previous: Position
}

export interface Registry {
  readonly channels: readonly KnownChannel[]
  /** Stands for every channel that is not known. */
  readonly forgottenThrough: Position
}

/** All channels that start with a prefix, some at a time. A million of them are 2,000 questions, so nobody asks without need. */
export async function* registryPages(ask: Ask, prefix: string): AsyncGenerator<Registry> {
  let behind = ''
  do {
    const page = await registryPage(ask, prefix, behind, channelsAtATime)
    yield page
    behind = page.last
  } while (behind !== '')
}

/** The next channels behind a name. `last` is the name to go on behind, '' when there are no more. */
export async function registryPage(
  ask: Ask,
  prefix: string,
  behind: string,
  limit: number,
): Promise<Registry & { last: string }> {
  const [forgotten, last, ...windows] = await ask('registry', prefix, behind, String(limit))
  return {
    channels: windows.map((window) => parseWindow(window as string[])),
    forgottenThrough: parsePosition(forgotten as string),
    last: last as string,
  }
}

// A millisecond or two of Redis.
const channelsAtATime = 500

/** Of channels by name, in the order asked for. */
export async function windowsOf(ask: Ask, names: readonly string[]): Promise<Registry> {
  const [forgotten, ...windows] = await ask('windows', ...names)
  return {
    channels: windows.map((window) => parseWindow(window as string[])),
    forgottenThrough: parsePosition(forgotten as string),
  }
}

function parseWindow(fields: readonly string[]): KnownChannel {
  const [
    channel = '',
    events,
    bytes,
    trimmed = '',
    oldest = '',
    newest = '',
    ended = '',
    newestPosition = '',
    invalidated = '',
    previous = '',
  ] = fields
  return {
    channel,
    events: Number(events),
    bytes: Number(bytes),
    trimmedThrough: parsePosition(trimmed),
    newestPosition: parsePosition(newestPosition),
    invalidatedThrough: parsePosition(invalidated),
    previous: parsePosition(previous),
    ...(oldest ? { oldest: parsePosition(oldest), newest: parsePosition(newest) } : {}),
    ...(ended ? { ended: parsePosition(ended) } : {}),
  }
}
