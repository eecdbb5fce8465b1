import { RejoinError } from '@rejoin/protocol'
import type { WindowOptions } from './contract.ts'

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
