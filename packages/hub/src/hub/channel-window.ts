import type { Position } from '@rejoin/protocol'
import type { Log, Window, WindowOptions } from '../log/contract.ts'

export interface ChannelWindow {
  readonly events: number
  readonly bytes: number
  /** The id of the oldest event still held, null when there is none; and of the newest. */
  readonly oldest: string | null
  readonly newest: string | null
  /** When those were published, in milliseconds since 1970; null as well where ids tell no time. */
  readonly oldestAt: number | null
  readonly newestAt: number | null
  /** Whether it has ended. */
  readonly ended: boolean
  /** What it may hold; of a pattern, what its channels may that have no narrower window of their own. */
  readonly limits: Readonly<Required<WindowOptions>>
}

/** A window of the log, with ids in the place of positions. */
export function shownWindow(window: Window, idOf: (position: Position) => string, log: Limited): ChannelWindow {
  const { channel, events, bytes, oldest, newest, ended } = window
  const ids = { oldest: oldest ? idOf(oldest) : null, newest: newest ? idOf(newest) : null }
  // A counter clock tells no time.
  const times = { oldestAt: oldest?.ms || null, newestAt: newest?.ms || null }
  return { events, bytes, ...ids, ...times, ended: ended !== undefined, limits: limitsOf(log, channel) }
}

/** The window that holds for a channel or pattern. */
export function limitsOf(log: Limited, name: string): Readonly<Required<WindowOptions>> {
  return log.windowOf?.(name) ?? log.window
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
