import {
  checkSelector,
  gravestLoss,
  isAfter,
  isSame,
  latest,
  narrowestOf,
  origin,
  type Position,
} from '@rejoin/protocol'
import { invalidOption } from '../invalid-option.ts'
import { type Complete, withDefaults } from '../with-defaults.ts'
import type { Window, WindowOptions } from './contract.ts'

/** The caller's bounds over the log's own defaults, each checked. */
export function windowOf(
  options: WindowOptions | undefined,
  defaults: Complete<WindowOptions>,
): Complete<WindowOptions> {
  const window = withDefaults(options, defaults)
  for (const [name, value] of Object.entries(window)) {
    if (!(value >= 1)) {
      throw invalidOption(`window.${name} is ${String(value)}. Give a number of 1 or more, or leave it out.`)
    }
  }
  return window
}

/** The bytes that all channels of a log may hold together, checked. */
export function budgetOf(maxBytes: number | undefined): number | undefined {
  if (maxBytes === undefined || maxBytes >= 1) return maxBytes
  throw invalidOption(`maxBytes is ${String(maxBytes)}. Give a number of 1 or more, or leave it out.`)
}

/** Windows of some channels and patterns. A bound that one of them leaves out is the bound of the log's window. */
export type ChannelWindows = Readonly<Record<string, WindowOptions>>

/** The windows of a log by channel: that of the channel's own name, else of the narrowest pattern over it, else the log's. */
export interface Windows {
  of(channel: string): Complete<WindowOptions>
  /** The longest and the shortest `maxAgeMs` of all channels. */
  readonly longestAgeMs: number
  readonly shortestAgeMs: number
  /** The windows of some channels and patterns, by the names they were given for. */
  readonly named: ReadonlyMap<string, Complete<WindowOptions>>
}

export function createWindows(window: Complete<WindowOptions>, windows: ChannelWindows = {}): Windows {
  const named = new Map(Object.entries(windows).map(([name, own]) => [checkSelector(name), windowOf(own, window)]))
  const ages = [window, ...named.values()].map(({ maxAgeMs }) => maxAgeMs)
  return {
    named,
    longestAgeMs: Math.max(...ages),
    shortestAgeMs: Math.min(...ages),
    of(channel) {
      if (named.size === 0) return window
      return narrowestOf(named, channel) ?? window
    },
  }
}

/** Adds the windows of some channels to the window of their pattern. */
export function sumWindows(sum: Window, windows: Iterable<Window>): Window {
  let { events, bytes, trimmedThrough, oldest, newest, lost } = sum
  for (const window of windows) {
    events += window.events
    bytes += window.bytes
    trimmedThrough = latest(trimmedThrough, window.trimmedThrough)
    if (window.oldest && (!oldest || isAfter(oldest, window.oldest))) oldest = window.oldest
    if (window.newest) newest = latest(newest ?? window.newest, window.newest)
    lost = gravestLoss([lost, window.lost])
  }
  const bounds = { ...(oldest ? { oldest } : {}), ...(newest ? { newest } : {}) }
  return { channel: sum.channel, events, bytes, trimmedThrough, ...bounds, ...(lost ? { lost } : {}) }
}

/** The window of a pattern before its channels are added. Any forgotten channel may have been one of the pattern's. */
export function windowOfForgotten(pattern: string, forgottenThrough: Position): Window {
  const lost = isSame(forgottenThrough, origin) ? {} : { lost: 'expired' as const }
  return { channel: pattern, events: 0, bytes: 0, trimmedThrough: forgottenThrough, ...lost }
}

/**
 * Why a channel's beginning is gone. The link of its oldest event tells that, and `trimmedThrough` alone does not: a new channel
 * starts with the `trimmedThrough` of the channels that were forgotten before it.
 */
export function lossOf(channel: Beginning, forgottenThrough: Position): Pick<Window, 'lost'> {
  const { previous, trimmedThrough, invalidatedThrough } = channel
  if (!isSame(invalidatedThrough, origin)) return { lost: 'forced' }
  return isSame(previous, origin) && !isAfter(trimmedThrough, forgottenThrough) ? {} : { lost: 'expired' }
}

export interface Beginning {
  /** The position that the oldest event names as `previous`; without events, the newest position. */
  readonly previous: Position
  readonly trimmedThrough: Position
  readonly invalidatedThrough: Position
}
