import type { Hub, HubAdmin } from '@rejoin/hub'
import type { LogBudget } from '@rejoin/hub/log'
import type { RejectedRequest } from '@rejoin/hub/operations'
import { type NodeNote, nodeName } from './nodes.ts'

/** The figures of a hub in one second, for the dashboard. Counts run since the start, so a missed event loses no count. */
export interface Figures {
  readonly at: number
  readonly startedAt: number
  readonly version: string
  /** The names of the machine and the process. */
  readonly node: string
  /** The hubs on this log; empty while the log does not answer, null for a log that only this hub can use. */
  readonly nodes: readonly NodeNote[] | null
  readonly log: Pick<Hub['log'], 'name' | 'durability' | 'window'>
  /** How much of its budget the log uses; null without a budget. */
  readonly budget: LogBudget | null
  /** How long readers are told to wait before they return. */
  readonly retryMs: number
  readonly readers: { readonly live: number; readonly replaying: number; readonly slow: number }
  readonly pendingBytes: number
  readonly totals: HubAdmin['totals']
  readonly connects: number
  /** Rejected requests, by reason. */
  readonly rejects: Readonly<Record<string, number>>
  /** Whether the hub closes its streams to stop, and whether maintenance is on. */
  readonly state: { readonly draining: boolean; readonly maintenance: boolean }
  /** Readers that came with a cursor, by outcome. */
  readonly resumes: Readonly<Record<string, number>>
  /** The number of returns that replayed up to 0, 1, 10, 100, 1,000 and 10,000 events, and more. */
  readonly replaySizes: readonly number[]
  readonly process: { readonly cpuMs: number; readonly rssBytes: number; readonly lateMs: number }
  /** The ten slow readers with the most bytes in wait. */
  readonly slowest: readonly SlowReader[]
  /** Streams that have ended since the second before, at most ten. */
  readonly closes: readonly EndedStream[]
  /** Requests that were rejected since the second before, at most ten. */
  readonly rejections: readonly Rejection[]
}

export interface Rejection {
  readonly at: number
  readonly status: number
  readonly reason: string
  /** What the requester wanted to do, such as `read` or `publish`. */
  readonly action: string
  readonly channels: readonly string[]
  readonly ip: string | null
  readonly origin: string | null
}

export interface SlowReader {
  readonly connection: string
  readonly channels: readonly string[]
  readonly ip: string | null
  readonly pending: number
}

export interface EndedStream {
  readonly at: number
  readonly connection: string
  readonly channels: readonly string[]
  readonly ip: string | null
  readonly reason: string
  readonly durationMs: number
}

/** Counts what a hub does. `take` gives the figures of this moment. */
export function watchFigures(hub: Hub, version: string): FiguresWatch {
  const startedAt = Date.now()
  const resumes: Record<string, number> = {}
  const replaySizes = [...sizeBounds, 0].map(() => 0)
  let connects = 0
  const rejects: Record<string, number> = {}
  let rejections: Rejection[] = []
  let closes: EndedStream[] = []
  // Connections that came with a cursor, and have neither caught up nor been told of a gap.
  const returning = new Set<string>()
  let rssBytes = 0

  const resumed = (outcome: string) => {
    resumes[outcome] = (resumes[outcome] ?? 0) + 1
  }
  hub.on('connect', ({ connection, resuming }) => {
    connects += 1
    if (resuming) returning.add(connection)
  })
  hub.on('replay', ({ connection, replayed }) => {
    returning.delete(connection)
    resumed('replayed')
    const size = sizeBounds.findIndex((bound) => replayed <= bound)
    const index = size < 0 ? sizeBounds.length : size
    replaySizes[index] = (replaySizes[index] ?? 0) + 1
  })
  hub.on('gap', ({ connection, reason }) => {
    if (returning.delete(connection)) resumed(reason)
  })
  hub.on('close', ({ connection, channels, ip, reason, durationMs }) => {
    if (returning.delete(connection)) resumed('left')
    if (closes.length >= mostListed) return
    closes.push({ at: Date.now(), connection, channels: channels.slice(0, mostChannels), ip, reason, durationMs })
  })
  const rejected = (kind: string) => {
    rejects[kind] = (rejects[kind] ?? 0) + 1
  }
  const listRejected = ({ action = 'read', channels, status, reason, ip, origin }: RejectedRequest) => {
    if (rejections.length >= mostListed) return
    rejections.push({
      at: Date.now(),
      action,
      channels: channels.slice(0, mostChannels),
      status,
      reason,
      ip,
      origin: origin ?? null,
    })
  }
  hub.on('reject', (request) => {
    rejected(request.reason)
    listRejected(request)
  })

  /** Memory in use; the last known value when no file descriptor is left to read it. A dashboard must not end the program. */
  function residentBytes(): number {
    try {
      rssBytes = process.memoryUsage.rss()
    } catch {
      // The next second asks again.
    }
    return rssBytes
  }

  function take(lateMs: number, { nodes, budget, state }: Told): Figures {
    const { user, system } = process.cpuUsage()
    const [ended, latest] = [closes, rejections]
    closes = []
    rejections = []
    const { durability, name, window } = hub.log
    return {
      at: Date.now(),
      startedAt,
      version,
      node: nodeName,
      nodes,
      log: { durability, name, window },
      budget,
      retryMs: hub.admin.retryMs,
      ...lookAtReaders(hub),
      totals: { ...hub.admin.totals },
      connects,
      rejects: { ...rejects },
      state,
      resumes: { ...resumes },
      replaySizes: [...replaySizes],
      process: { cpuMs: Math.round((user + system) / 1000), rssBytes: residentBytes(), lateMs },
      closes: ended,
      rejections: latest,
    }
  }

  return { take, rejected, listRejected }
}

export interface FiguresWatch {
  /** The figures of the last second. Starts the lists of closes and rejections anew. */
  take(lateMs: number, told: Told): Figures
  /** Counts a request that the program rejected for this reason, without the hub. */
  rejected(kind: string): void
  /** Lists a request that the program rejected. `rejected` counts it. */
  listRejected(request: RejectedRequest): void
}

/** The figures that the watch cannot see by itself. */
export type Told = Pick<Figures, 'nodes' | 'budget' | 'state'>

const sizeBounds = [0, 1, 10, 100, 1000, 10_000]
// The rows that a table shows. Also bounds the size of an event in a second with many closes.
const mostListed = 10
const mostChannels = 3

function lookAtReaders(hub: Hub): Pick<Figures, 'readers' | 'pendingBytes' | 'slowest'> {
  const readers = { live: 0, replaying: 0, slow: 0 }
  let pendingBytes = 0
  let slowest: SlowReader[] = []
  for (const { mode, full, pending, connection, channels, ip } of hub.admin.connections()) {
    readers[mode] += 1
    pendingBytes += pending
    if (!full) continue
    readers.slow += 1
    slowest.push({ connection, channels: channels.slice(0, mostChannels), ip, pending })
    if (slowest.length > 10 * mostListed) slowest = mostPending(slowest)
  }
  return { readers, pendingBytes, slowest: mostPending(slowest) }
}

function mostPending(readers: SlowReader[]): SlowReader[] {
  return readers.sort((one, other) => other.pending - one.pending).slice(0, mostListed)
}
