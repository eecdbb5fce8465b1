import { checkName, isAfter, latest, patternsOver, RejoinError } from '@rejoin/protocol'
import type { Window, WindowOptions } from './contract.ts'

/** The window a log works with: the caller's bounds over the log's own defaults, each checked. */
export function windowOf(
  options: WindowOptions | undefined,
  defaults: Required<WindowOptions>,
): Required<WindowOptions> {
  const window = { ...defaults, ...options }
  for (const [name, value] of Object.entries(window)) {
    if (!(value >= 1)) {
      throw new RejoinError(`window.${name} is ${String(value)}. Give a number of 1 or more, or leave it out.`, {
        code: 'invalid-option',
      })
    }
  }
  return window
}

/** Windows for channels and patterns of their own; each takes what it leaves out from the log's window. */
export type ChannelWindows = Readonly<Record<string, WindowOptions>>

/** Which window a channel has: that of its own name, else of the narrowest pattern over it, else the log's. */
export interface Windows {
  of(channel: string): Required<WindowOptions>
  /** The longest and the shortest age that any channel has. */
  readonly longestAgeMs: number
  readonly shortestAgeMs: number
  /** Those that are not the log's, by the names they were given for. */
  readonly named: ReadonlyMap<string, Required<WindowOptions>>
}

export function createWindows(window: Required<WindowOptions>, windows: ChannelWindows = {}): Windows {
  const named = new Map(Object.entries(windows).map(([name, own]) => [checkName(name), windowOf(own, window)]))
  const ages = [window, ...named.values()].map(({ maxAgeMs }) => maxAgeMs)
  return {
    named,
    longestAgeMs: Math.max(...ages),
    shortestAgeMs: Math.min(...ages),
    of(channel) {
      if (named.size === 0) return window
      let found = named.get(channel)
      // The narrowest comes last.
      if (!found) for (const pattern of patternsOver(channel)) found = named.get(pattern) ?? found
      return found ?? window
    },
  }
}

/** The window of a pattern, from those of its channels; `sum` is what was summed up so far. */
export function sumWindows(sum: Window, windows: Iterable<Window>): Window {
  let { events, bytes, trimmedThrough, oldest, newest } = sum
  for (const window of windows) {
    events += window.events
    bytes += window.bytes
    trimmedThrough = latest(trimmedThrough, window.trimmedThrough)
    if (window.oldest && (!oldest || isAfter(oldest, window.oldest))) oldest = window.oldest
    if (window.newest) newest = latest(newest ?? window.newest, window.newest)
  }
  const bounds = { ...(oldest ? { oldest } : {}), ...(newest ? { newest } : {}) }
  return { channel: sum.channel, events, bytes, trimmedThrough, ...bounds }
}
