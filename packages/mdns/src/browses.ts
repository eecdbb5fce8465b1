import type { Hub } from '@rejoin/hub'
import type { Cancel } from '@rejoin/hub/internal'
import { RejoinError } from '@rejoin/protocol'
import { type Browse, createBrowse } from './browse.ts'
import { createFeed, type Feed } from './feed.ts'
import type { DnsRecord, Query } from './network.ts'
import { channelOf, type ServiceType } from './service-type.ts'
import type { Timing } from './timing.ts'

/** One browse per type, shared by all users of that type, and kept for a while after the last of them has left. */
export interface Browses {
  /** Joins the browse of a type, or begins it. Rejects with `overloaded` when too many types are browsed. */
  take(type: ServiceType): Promise<TakenBrowse>
  receive(records: readonly DnsRecord[], sender: string): void
  list(): BrowseFacts[]
  close(): void
}

export interface TakenBrowse {
  readonly type: ServiceType
  readonly channel: string
  readonly feed: Feed
  /** When the browse began, by `timing.now()`. */
  readonly since: number
  /** Leaves the browse. Call it once. */
  release(): void
}

export interface BrowseFacts {
  readonly type: ServiceType
  readonly services: number
  /** How many users the browse has now. */
  readonly users: number
  /** Whether services were left out because there are too many. */
  readonly overflowed: boolean
}

export interface BrowsesOptions {
  readonly hub: Hub
  readonly timing: Timing
  readonly lingerMs: number
  readonly maxTypes: number
  readonly maxServices: number
  ask(query: Query): void
  /** Called when the first browse begins and when the last browse has ended. */
  onLooking(isLooking: boolean): void
}

interface Shared {
  readonly type: ServiceType
  readonly browse: Browse
  readonly feed: Feed
  readonly since: number
  readonly opened: Promise<void>
  isOpen: boolean
  users: number
  /** Cancels the timer that ends a browse without users. */
  linger: Cancel | undefined
}

export function createBrowses(options: BrowsesOptions): Browses {
  const { hub, timing, lingerMs, maxTypes, maxServices, ask, onLooking } = options
  // Browses without users stand in the order in which they were left.
  const shared = new Map<ServiceType, Shared>()
  let closed = false

  function begin(type: ServiceType): Shared {
    makeRoom()
    const browse = createBrowse({ type, timing, maxServices, ask, tell: (facts) => feed.say(facts) })
    const feed = createFeed({ hub, timing, channel: channelOf(type), current: browse.current })
    // `open` invalidates the events of earlier browses. Events of this browse must come after that.
    const opened = feed.open().then(() => {
      entry.isOpen = true
      browse.start()
    })
    const since = timing.now()
    const entry: Shared = { type, browse, feed, since, opened, isOpen: false, users: 0, linger: undefined }
    shared.set(type, entry)
    if (shared.size === 1) onLooking(true)
    opened.catch(() => end(entry))
    return entry
  }

  function makeRoom(): void {
    if (shared.size < maxTypes) return
    const [unused] = [...shared.values()].filter(({ users }) => users === 0)
    if (!unused) {
      throw new RejoinError(
        `${maxTypes} service types are looked for already, and each costs the network queries. Ask for one of them.`,
        { code: 'overloaded', retryable: true },
      )
    }
    end(unused)
  }

  function end(entry: Shared): void {
    entry.linger?.()
    entry.browse.stop()
    entry.feed.close()
    if (shared.get(entry.type) !== entry) return
    shared.delete(entry.type)
    if (shared.size === 0) onLooking(false)
  }

  function release(entry: Shared): void {
    entry.users -= 1
    if (entry.users > 0 || shared.get(entry.type) !== entry) return
    shared.delete(entry.type)
    shared.set(entry.type, entry)
    entry.linger = timing.after(lingerMs, () => end(entry))
  }

  return {
    async take(type) {
      if (closed) throw new RejoinError('The mDNS source is closed.', { code: 'closed' })
      const entry = shared.get(type) ?? begin(type)
      entry.users += 1
      entry.linger?.()
      entry.linger = undefined
      try {
        await entry.opened
      } catch (error) {
        release(entry)
        throw error
      }
      const { feed, since } = entry
      return { type, feed, since, channel: channelOf(type), release: () => release(entry) }
    },
    receive(records, sender) {
      for (const { browse, isOpen } of shared.values()) if (isOpen) browse.receive(records, sender)
    },
    list: () =>
      [...shared.values()].map(({ type, browse, users }) => {
        return { type, services: browse.current().length, users, overflowed: browse.overflowed }
      }),
    close() {
      closed = true
      for (const entry of [...shared.values()]) end(entry)
    },
  }
}
