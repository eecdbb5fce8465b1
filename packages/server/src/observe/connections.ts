import type { Connection, Hub } from '@rejoin/hub'
import type { CloseReason } from '@rejoin/protocol'

/** A page of those who are connected, oldest first, and where the next one begins; null when this is the last. */
export function listConnections(hub: Pick<Hub, 'connections'>, options: ListOptions): ConnectionPage {
  const { limit, subject, channel } = options
  const after = readPlace(options.after)
  // The oldest so far, and one more, in order. A dashboard asks for the first few of ten thousand every three seconds:
  // sorting them all took 3 % of a core (`bench/dashboard`, Node 20).
  const oldest: Connection[] = []
  let total = 0
  for (const each of hub.connections()) {
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
  return { connections, total, next: last && oldest.length > limit ? placeOf(last) : null }
}

export interface ListOptions {
  /** The `next` of the page before, '' for the first. */
  readonly after: string
  readonly limit: number
  readonly subject?: string
  /** One of those that it asked for, by the name or pattern it used. */
  readonly channel?: string
}

export interface ConnectionPage {
  readonly connections: readonly Connection[]
  /** Of all pages. */
  readonly total: number
  readonly next: string | null
}

type Place = Pick<Connection, 'since' | 'connection'>

/** Names of connections are random, so they alone say nothing of an order. */
function isOlder(one: Place, other: Place): boolean {
  return one.since === other.since ? one.connection < other.connection : one.since < other.since
}

function placeOf({ since, connection }: Place): string {
  return `${since}-${connection}`
}

function readPlace(text: string): Place | undefined {
  const [, since, connection] = /^(\d+)-(.+)$/.exec(text) ?? []
  return since === undefined || connection === undefined ? undefined : { since: Number(since), connection }
}

/**
 * Ends all connections, spread evenly, so that those who return are spread as well. Returns a function that lets those stay
 * who are still here.
 */
export function endConnections(hub: Pick<Hub, 'connections' | 'disconnect'>, options: EndConnections): () => void {
  const { reason, retryMs, withinMs } = options
  const names = [...hub.connections()].map(({ connection }) => connection)
  const timers: NodeJS.Timeout[] = []
  for (const [index, name] of names.entries()) {
    const end = () => hub.disconnect(name, { reason, retryMs: retryMs() })
    if (withinMs === 0) end()
    else timers.push(setTimeout(end, (withinMs * index) / names.length).unref())
  }
  return () => {
    for (const timer of timers) clearTimeout(timer)
  }
}

export interface EndConnections {
  readonly reason: CloseReason
  /** When one of them should be back. */
  retryMs(): number
  readonly withinMs: number
}

/** How many are in which state, and how many bytes wait for them. */
export function tallyConnections(hub: Pick<Hub, 'connections'>): ConnectionTally {
  const tally = { live: 0, replaying: 0, slow: 0, pendingBytes: 0 }
  for (const { mode, full, pending } of hub.connections()) {
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
