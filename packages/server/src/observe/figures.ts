import type { Hub } from '@rejoin/hub'
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
  /** What readers are told to wait before they come back. */
  readonly retryMs: number
  readonly readers: { readonly live: number; readonly replaying: number; readonly slow: number }
  readonly pendingBytes: number
  readonly totals: Hub['totals']
  readonly connects: number
  readonly rejects: number
  /** What became of readers that came with a cursor. */
  readonly resumes: Readonly<Record<string, number>>
  /** How many returns replayed up to 0, 1, 10, 100, 1,000, 10,000 events, and more. */
  readonly replaySizes: readonly number[]
  readonly process: { readonly cpuMs: number; readonly rssBytes: number; readonly lateMs: number }
  /** The readers for whom most waits, a few of them. */
  readonly slowest: readonly SlowReader[]
  /** Streams that have ended since the second before, a few of them. */
  readonly closes: readonly EndedStream[]
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
export function watchFigures(hub: Hub, version: string): (lateMs: number, nodes: Figures['nodes']) => Figures {
  const startedAt = Date.now()
  const resumes: Record<string, number> = {}
  const replaySizes = [...sizeBounds, 0].map(() => 0)
  let connects = 0
  let rejects = 0
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
  hub.on('reject', () => {
    rejects += 1
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

  return (lateMs, nodes) => {
    const { user, system } = process.cpuUsage()
    const ended = closes
    closes = []
    const { durability, name, window } = hub.log
    return {
      ...{ at: Date.now(), startedAt, version, node: nodeName, nodes },
      ...{ log: { durability, name, window }, retryMs: hub.retryMs },
      ...lookAtReaders(hub),
      ...{ totals: { ...hub.totals }, connects, rejects, resumes: { ...resumes }, replaySizes: [...replaySizes] },
      process: { cpuMs: Math.round((user + system) / 1000), rssBytes: residentBytes(), lateMs },
      closes: ended,
    }
  }
}

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
