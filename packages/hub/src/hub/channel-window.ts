import type { Position } from '@rejoin/protocol'
import type { Window } from '../log/contract.ts'

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
}

/** A window of the log, with ids in the place of positions. */
export function shownWindow(window: Window, idOf: (position: Position) => string): ChannelWindow {
  const { events, bytes, oldest, newest, ended } = window
  const ids = { oldest: oldest ? idOf(oldest) : null, newest: newest ? idOf(newest) : null }
  // A counter clock tells no time.
  const times = { oldestAt: oldest?.ms || null, newestAt: newest?.ms || null }
  return { events, bytes, ...ids, ...times, ended: ended !== undefined }
}

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
