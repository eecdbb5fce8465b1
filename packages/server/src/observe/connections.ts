import type { Connection, Hub } from '@rejoin/hub'
import type { CloseReason } from '@rejoin/protocol'

/** A page of those who are connected, oldest first, and where the next one begins; null when this is the last. */
export function listConnections(hub: Pick<Hub, 'connections'>, options: ListOptions): ConnectionPage {
  const { after, limit, subject, channel } = options
  const isMeant = (each: Connection) =>
    placeOf(each) > after &&
    (subject === undefined || each.subject === subject) &&
    (channel === undefined || each.channels.includes(channel))
  const meant = [...hub.connections()].filter(isMeant).sort((one, other) => (placeOf(one) < placeOf(other) ? -1 : 1))
  const connections = meant.slice(0, limit)
  const last = connections.at(-1)
  return { connections, next: last && meant.length > limit ? placeOf(last) : null }
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
  readonly next: string | null
}

/** Names of connections are random, so they alone say nothing of an order. */
function placeOf({ since, connection }: Connection): string {
  return `${String(since).padStart(15, '0')}-${connection}`
}

/** Ends all connections, spread evenly, so that those who return are spread as well. */
export function endConnections(hub: Pick<Hub, 'connections' | 'disconnect'>, options: EndConnections): void {
  const { reason, retryMs, withinMs } = options
  const names = [...hub.connections()].map(({ connection }) => connection)
  for (const [index, name] of names.entries()) {
    const end = () => hub.disconnect(name, { reason, retryMs: retryMs() })
    if (withinMs === 0) end()
    else setTimeout(end, (withinMs * index) / names.length).unref()
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
