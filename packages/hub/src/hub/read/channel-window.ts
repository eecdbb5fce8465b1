import { checkSelector, type Position } from '@rejoin/protocol'
import type { Log, Window, WindowOptions } from '../../log/contract.ts'
import type { Hub } from '../hub.ts'

export interface ChannelWindow {
  readonly events: number
  readonly bytes: number
  /** The id of the oldest event still held, null when there is none; and of the newest. */
  readonly oldest: string | null
  readonly newest: string | null
  /** When the oldest and the newest event were published, in milliseconds since 1970; null where ids tell no time. */
  readonly oldestAt: number | null
  readonly newestAt: number | null
  /** Whether it has ended. */
  readonly ended: boolean
  /** What the window may hold; for a pattern, the window of its channels that have no narrower one of their own. */
  readonly limits: Readonly<Required<WindowOptions>>
}

// The longest list that one call gives.
export const maxListed = 1000

/** What the windows of channels hold, by their ids. */
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

/** A window of the log, with ids instead of positions. */
function shownWindow(window: Window, idOf: (position: Position) => string, log: Limited): ChannelWindow {
  const { channel, events, bytes, oldest, newest, ended } = window
  const ids = { oldest: oldest ? idOf(oldest) : null, newest: newest ? idOf(newest) : null }
  // A counter clock tells no time.
  const times = { oldestAt: oldest?.ms || null, newestAt: newest?.ms || null }
  return { events, bytes, ...ids, ...times, ended: ended !== undefined, limits: limitsOf(log, channel) }
}

/** The window that holds for a channel or pattern. */
export function limitsOf(log: Limited, selector: string): Readonly<Required<WindowOptions>> {
  return log.windowOf?.(selector) ?? log.window
}

type Limited = Pick<Log, 'window' | 'windowOf'>

export interface ChannelListOptions {
  /**
   * Only channels that start with it.
   * @defaultValue ''
   */
  prefix?: string
  /** Only channels behind this one: the last of the page before. */
  after?: string
  /**
   * At most so many, up to 1,000.
   * @defaultValue 100
   */
  limit?: number
}
