import type { Connection, HubAdmin } from '@rejoin/hub'

/** A page of the connections, oldest first. `next` is where the next page begins; null on the last page. */
export function listConnections(admin: Pick<HubAdmin, 'connections'>, options: ListOptions): ConnectionPage {
  const { limit, subject, channel } = options
  const after = readKey(options.after)
  // Keeps only the oldest connections, and one more, in order. A dashboard asks for the first few of ten thousand every three
  // seconds: sorting all of them took 3 % of a core (`bench/dashboard`, Node 20).
  const oldest: Connection[] = []
  let total = 0
  for (const each of admin.connections()) {
    if (subject !== undefined && each.subject !== subject) continue
    if (channel !== undefined && !each.channels.includes(channel)) continue
    total += 1
    if (after && !isOlder(after, each)) continue
    const youngest = oldest[limit]
    if (youngest && !isOlder(each, youngest)) continue
    oldest.splice(oldest.findLastIndex((other) => isOlder(other, each)) + 1, 0, each)
    if (oldest.length > limit + 1) oldest.pop()
  }
  const connections = oldest.slice(0, limit)
  const last = connections.at(-1)
  return { connections, total, next: last && oldest.length > limit ? textOfKey(last) : null }
}

export interface ListOptions {
  /** The `next` of the page before; '' for the first page. */
  readonly after: string
  readonly limit: number
  readonly subject?: string
  /** A channel or a pattern, exactly as the reader asked for it. */
  readonly channel?: string
}

export interface ConnectionPage {
  readonly connections: readonly Connection[]
  /** The number of connections on all pages. */
  readonly total: number
  readonly next: string | null
}

/** The key that orders connections, oldest first. It also marks where the next page starts. */
type PageKey = Pick<Connection, 'since' | 'connection'>

/** Names of connections are random, so a name decides only between connections of the same millisecond. */
function isOlder(one: PageKey, other: PageKey): boolean {
  return one.since === other.since ? one.connection < other.connection : one.since < other.since
}

function textOfKey({ since, connection }: PageKey): string {
  return `${since}-${connection}`
}

function readKey(text: string): PageKey | undefined {
  const [, since, connection] = /^(\d+)-(.+)$/.exec(text) ?? []
  return since === undefined || connection === undefined ? undefined : { since: Number(since), connection }
}

/** Counts the connections in each state, and the bytes that wait for them. */
export function tallyConnections(admin: Pick<HubAdmin, 'connections'>): ConnectionTally {
  const tally = { live: 0, replaying: 0, slow: 0, pendingBytes: 0 }
  for (const { mode, full, pending } of admin.connections()) {
    tally[mode] += 1
    if (full) tally.slow += 1
    tally.pendingBytes += pending
  }
  return tally
}

export interface ConnectionTally {
  readonly live: number
  readonly replaying: number
  readonly slow: number
  readonly pendingBytes: number
}
