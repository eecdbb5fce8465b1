import { isPattern, latest, type Position, prefixOf } from '@rejoin/protocol'
import type { Window } from '../contract.ts'
import { endedWindow } from '../ended.ts'
import { lossOf, sumWindows, windowOfForgotten } from '../window.ts'
import { lossRecordedAt } from './branches.ts'
import { parsePosition } from './entry.ts'
import type { Ask, Reply } from './link.ts'
import type { KnownState } from './state.ts'

/** The windows of channels and patterns, in the order asked for. */
export async function windowsOfSelectors(
  ask: Ask,
  selectors: readonly string[],
  state: Pick<KnownState, 'base' | 'history'>,
): Promise<readonly Window[]> {
  const channels = selectors.filter((selector) => !isPattern(selector))
  const known = parseRegistry(await ask('windows', ...channels))
  const windows = new Map(known.channels.map((it) => [it.channel, windowIn(it, state, known.forgottenThrough)]))
  for (const selector of selectors.filter(isPattern)) {
    let sum: Window | undefined
    for await (const { channels, forgottenThrough } of registryPages(ask, prefixOf(selector))) {
      const inPage = channels.map((channel) => windowIn(channel, state, forgottenThrough))
      sum = sumWindows(sum ?? windowOfForgotten(selector, forgottenThrough), inPage)
      sum = { ...sum, trimmedThrough: latest(sum.trimmedThrough, latest(forgottenThrough, state.base)) }
    }
    windows.set(selector, sum as Window)
  }
  return selectors.map((selector) => windows.get(selector) as Window)
}

/** The window of a channel as the contract has it, without the positions that only this log needs. */
export function windowIn(
  known: KnownChannel,
  { base, history }: Pick<KnownState, 'base' | 'history'>,
  forgottenThrough: Position,
): Window {
  const { newestPosition: _newest, invalidatedThrough, previous: _previous, ...window } = known
  const isRolledBack = lossRecordedAt(history, window.trimmedThrough) !== undefined
  const { lost } = lossOf(known, forgottenThrough)
  const loss = isRolledBack && lost !== 'forced' ? ({ lost: 'epoch' } as const) : lost ? { lost } : {}
  const ended = window.ended && endedWindow(window.ended, invalidatedThrough)
  return { ...window, ...ended, trimmedThrough: latest(window.trimmedThrough, base), ...loss }
}

/** The window of a channel, and positions that outlive its events. */
interface KnownChannel extends Window {
  /** The position of the last event or invalidation. */
  readonly newestPosition: Position
  readonly invalidatedThrough: Position
  /** The position that the oldest event names as `previous`; without events, the newest position. */
  readonly previous: Position
}

interface Registry {
  readonly channels: readonly KnownChannel[]
  /** The `trimmedThrough` of every unknown channel. */
  readonly forgottenThrough: Position
  /** The name to go on from, '' when there are no more channels. */
  readonly last: string
}

/** All channels with a prefix, some at a time. A million channels take 2,000 calls, so use it only where nothing else will do. */
async function* registryPages(ask: Ask, prefix: string): AsyncGenerator<Registry> {
  let behind = ''
  do {
    const page = await registryPage(ask, prefix, behind, channelsAtATime)
    yield page
    behind = page.last
  } while (behind !== '')
}

// A call takes Redis a millisecond or two.
const channelsAtATime = 500

/** The next channels after the name `behind`. */
export async function registryPage(ask: Ask, prefix: string, behind: string, limit: number): Promise<Registry> {
  return parseRegistry(await ask('registry', prefix, behind, String(limit)))
}

function parseRegistry([forgotten, last, ...windows]: Reply): Registry {
  return {
    channels: windows.map((window) => parseWindow(window as string[])),
    forgottenThrough: parsePosition(forgotten as string),
    last: last as string,
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
