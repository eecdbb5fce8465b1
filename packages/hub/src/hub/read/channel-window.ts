import { checkSelector, type Position } from '@rejoin/protocol'
import type { Log, Window, WindowOptions } from '../../log/contract.ts'
import type { Complete } from '../../with-defaults.ts'
import type { Hub } from '../hub.ts'

export interface ChannelWindow {
  readonly events: number
  readonly bytes: number
  /** The ids of the oldest and of the newest event that the channel holds; null when it holds none. */
  readonly oldest: string | null
  readonly newest: string | null
  /** When the oldest and the newest event were published, in milliseconds since 1970; null when ids tell no time. */
  readonly oldestAt: number | null
  readonly newestAt: number | null
  readonly ended: boolean
  /** The limits of the window; for a pattern, the limits of its channels that have no narrower ones of their own. */
  readonly limits: Readonly<Complete<WindowOptions>>
}

// Entries in the list of one call, at most.
export const maxListed = 1000

/** The windows of the log, with ids instead of positions. */
export function channelWindows({ log, windows, idOf }: ChannelWindowsContext): Pick<Hub, 'window' | 'channels'> {
  return {
    async window(channel) {
      const [held] = await windows([checkSelector(channel)])
      return shownWindow(held as Window, idOf, log)
    },
    async channels({ prefix = '', after = '', limit = 100 } = {}) {
      const page = await log.channels({ prefix, after, limit: Math.min(limit, maxListed) })
      return page.map((window) => ({ channel: window.channel, ...shownWindow(window, idOf, log) }))
    },
  }
}

interface ChannelWindowsContext {
  readonly log: Limited & Pick<Log, 'channels'>
  /** Like `log.windows`. Readers that ask at the same time share one call. */
  windows(selectors: readonly string[]): Promise<readonly Window[]>
  idOf(position: Position): string
}

function shownWindow(window: Window, idOf: (position: Position) => string, log: Limited): ChannelWindow {
  const { channel, events, bytes, oldest, newest, ended } = window
  const ids = { oldest: oldest ? idOf(oldest) : null, newest: newest ? idOf(newest) : null }
  // A counter clock leaves ms at 0.
  const times = { oldestAt: oldest?.ms || null, newestAt: newest?.ms || null }
  return { events, bytes, ...ids, ...times, ended: ended !== undefined, limits: limitsOf(log, channel) }
}

/** The limits that apply to a channel or pattern. */
export function limitsOf(log: Limited, selector: string): Readonly<Complete<WindowOptions>> {
  return log.windowOf?.(selector) ?? log.window
}

type Limited = Pick<Log, 'window' | 'windowOf'>

export interface ChannelListOptions {
  /**
   * Only channels whose name starts with this text.
   * @defaultValue ''
   */
  prefix?: string | undefined
  /** Only channels after this name. Give the last name of the page before. */
  after?: string | undefined
  /**
   * The most channels to list, up to 1,000.
   * @defaultValue 100
   */
  limit?: number | undefined
}
