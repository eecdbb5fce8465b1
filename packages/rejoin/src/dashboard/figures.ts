import type { Hub, LogBudget } from '@rejoin/hub'
import type { RejectedRequest } from '@rejoin/hub/operations'
import { type NodeNote, nodeName } from './nodes.ts'

/** One second of a hub, for the dashboard. What is counted is counted since the start: whoever misses one loses nothing. */
export interface Figures {
  readonly at: number
  readonly startedAt: number
  readonly version: string
  /** The machine and the process. */
  readonly node: string
  /** The hubs on this log; none while it does not answer, null when only this hub can use it. */
  readonly nodes: readonly NodeNote[] | null
  readonly log: Pick<Hub['log'], 'name' | 'durability' | 'window'>
  /** What the log holds of what it may hold; null without a budget. */
  readonly budget: LogBudget | null
  /** What readers are told to wait before they come back. */
  readonly retryMs: number
  readonly readers: { readonly live: number; readonly replaying: number; readonly slow: number }
  readonly pendingBytes: number
  readonly totals: Hub['totals']
  readonly connects: number
  /** Requests that were rejected, by why. */
  readonly rejects: Readonly<Record<string, number>>
  /** Whether the hub lets its readers go, and whether an operator rejects them for a while. */
  readonly state: { readonly draining: boolean; readonly maintenance: boolean }
  /** What became of readers that came with a cursor. */
  readonly resumes: Readonly<Record<string, number>>
  /** How many returns replayed up to 0, 1, 10, 100, 1,000, 10,000 events, and more. */
  readonly replaySizes: readonly number[]
  readonly process: { readonly cpuMs: number; readonly rssBytes: number; readonly lateMs: number }
  /** The readers for whom most waits, a few of them. */
  readonly slowest: readonly SlowReader[]
  /** Streams that have ended since the second before, a few of them. */
  readonly closes: readonly EndedStream[]
  /** Requests that were rejected since the second before, a few of them. */
  readonly rejections: readonly Rejection[]
}

export interface Rejection {
  readonly at: number
  readonly status: number
  readonly reason: string
  /** What was asked for: to read, unless it says something else. */
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

/** Counts what a hub does, and gives the figures of this moment when it is asked. */
export function watchFigures(hub: Hub, version: string): FiguresWatch {
  const startedAt = Date.now()
  const resumes: Record<string, number> = {}
  const replaySizes = [...sizeBounds, 0].map(() => 0)
  let connects = 0
  const rejects: Record<string, number> = {}
  let rejections: Rejection[] = []
  let closes: EndedStream[] = []
  // Came with a cursor that has not been judged, or whose reader has not caught up.
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
  const refused = ({ action = 'read', channels, status, reason, ip, origin }: RejectedRequest) => {
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
    refused(request)
  })

  /** The last that was known, when there is no descriptor left to ask by: what only looks on must not end the program. */
  function residentBytes(): number {
    try {
      rssBytes = process.memoryUsage.rss()
    } catch {
      // It is asked again in a second.
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
      retryMs: hub.retryMs,
      ...lookAtReaders(hub),
      totals: { ...hub.totals },
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

  return { take, rejected, refused }
}

export interface FiguresWatch {
  /** Those of the last second. */
  take(lateMs: number, told: Told): Figures
  /** A request was rejected for this reason, without the hub. */
  rejected(kind: string): void
  /** The program has rejected this request. Counted by `rejected`, if at all. */
  refused(request: RejectedRequest): void
}

/** What others know. */
export type Told = Pick<Figures, 'nodes' | 'budget' | 'state'>

const sizeBounds = [0, 1, 10, 100, 1000, 10_000]
// What a table shows, and what a second of a storm may add to an event.
const mostListed = 10
const mostChannels = 3

function lookAtReaders(hub: Hub): Pick<Figures, 'readers' | 'pendingBytes' | 'slowest'> {
  const readers = { live: 0, replaying: 0, slow: 0 }
  let pendingBytes = 0
  let slowest: SlowReader[] = []
  for (const { mode, full, pending, connection, channels, ip } of hub.connections()) {
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
