import { isAfter, latest, RejoinError } from '@rejoin/protocol'
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
