import { checkSelector, isPattern, type Position } from '@rejoin/protocol'
import type { Log, Window, WindowOptions } from '../../log/contract.ts'
import type { Complete } from '../../with-defaults.ts'

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

export interface ChannelWindows {
  /** What a channel, or all channels of a pattern, hold for readers that return. */
  window(selector: string): Promise<ChannelWindow>
  /** The channels of the log, by name, some at a time. */
  channels(options?: ChannelListOptions): Promise<readonly (ChannelWindow & { readonly channel: string })[]>
}

/** The windows of the log, with ids instead of positions. */
export function channelWindows({ log, windows, idOf }: ChannelWindowsContext): ChannelWindows {
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

/**
 * `log.windows`, with at most one read of each pattern under way. The log reads every channel below a pattern, and there may be a
 * million of them. So readers that ask at the same time share one read.
 *
 * A shared answer may be as old as the read took. If events were trimmed meanwhile, the replay finds the gap, as it does for
 * events that are trimmed right after an answer.
 */
export function sharedWindows(log: Pick<Log, 'windows'>): (selectors: readonly string[]) => Promise<readonly Window[]> {
  const underWay = new Map<string, Promise<Window>>()

  function readWindow(pattern: string): Promise<Window> {
    let looking = underWay.get(pattern)
    if (!looking) {
      looking = log
        .windows([pattern])
        .then(([window]) => window as Window)
        .finally(() => underWay.delete(pattern))
      underWay.set(pattern, looking)
    }
    return looking
  }

  return async (selectors) => {
    const channels = selectors.filter((selector) => !isPattern(selector))
    const [known, ...patterns] = await Promise.all([
      channels.length > 0 ? log.windows(channels) : [],
      ...selectors.filter(isPattern).map(readWindow),
    ])
    const byName = new Map([...known, ...patterns].map((window) => [window.channel, window]))
    return selectors.map((selector) => byName.get(selector) as Window)
  }
}
