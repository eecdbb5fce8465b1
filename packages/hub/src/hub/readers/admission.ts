import { Generations } from '../../generations.ts'
import type { ReaderFacts } from '../observation.ts'
import { networkOf } from './network.ts'

export interface LimitOptions {
  /**
   * Streams open at once. Further streams are rejected with `overloaded`.
   * @defaultValue Infinity
   */
  maxConnections?: number | undefined
  /**
   * Streams open at once from one address; for IPv6, from one /64.
   * @defaultValue Infinity
   */
  maxPerIp?: number | undefined
  /**
   * Streams open at once for one subject.
   * @defaultValue Infinity
   */
  maxPerSubject?: number | undefined
  /**
   * How often in a row one client may return well before the time that it was told (`retry:`). One rapid return is forgiven every
   * two seconds. A client that returns more often is rejected, each time for twice as long, up to a minute. A client is known by
   * its client id. Without one, it is known by its cursor and its address, which others may share: it is not rejected, but served
   * up to three seconds late. `Infinity` serves every client at once.
   * @defaultValue 10
   */
  maxRapidReturns?: number | undefined
  /**
   * Streams that one address may open in ten seconds. This limit also stops clients that send neither a cursor nor a client id.
   * It counts all readers behind one address together, so set it only where no office or proxy shares an address.
   * @defaultValue Infinity
   */
  maxOpensPer10s?: number | undefined
  /**
   * Bytes of all streams that may be in memory because their readers have not taken them. Only the bytes of replays count: live
   * bytes are shared. Beyond this limit, replays wait. When that lasts for a second, the streams whose readers took the least are
   * closed (`overloaded`), and their readers return with their cursors.
   * @defaultValue 33554432
   */
  maxStreamBytes?: number | undefined
  /**
   * Bytes of poll answers that may be in memory at once: answers that are being collected, and answers that their readers have
   * not taken. When there is little room, answers are shorter and readers poll more often. When there is none, answers that were
   * not taken for a second or more are given up, and a poll may be rejected with `overloaded`.
   * @defaultValue 33554432
   */
  maxAnswerBytes?: number | undefined
  /**
   * Bytes of publish bodies that may be in memory at once. Beyond that, the oldest incomplete body is rejected with `overloaded`.
   * @defaultValue 33554432
   */
  maxIncomingBytes?: number | undefined
}

/** Counts connected readers, and decides which new readers are rejected. */
export interface Admission {
  /** Counts an attempt to connect, also a rejected one, so that a client that tries in a loop stays rejected. */
  countAttempt(reader: ReaderFacts, now: number): void
  /** Why this reader is rejected; undefined when it may connect. */
  reasonToReject(reader: ReaderFacts, now: number): 'connections' | 'per-ip' | 'per-subject' | 'too-rapid' | undefined
  enter(reader: ReaderFacts): void
  leave(reader: ReaderFacts): void
}

const rapidMs = 10_000

export function createAdmission({
  maxConnections = Number.POSITIVE_INFINITY,
  maxPerIp = Number.POSITIVE_INFINITY,
  maxPerSubject = Number.POSITIVE_INFINITY,
  maxOpensPer10s = Number.POSITIVE_INFINITY,
}: LimitOptions): Admission {
  const perNetwork = createRoom(maxPerIp)
  const perSubject = createRoom(maxPerSubject)
  let total = 0
  // Two generations of ten seconds each: memory holds the opens of twenty seconds at most.
  const opens = new Generations<number>()
  let bucketSince = 0

  function turnBucket(now: number): void {
    // After the clock was set back, counting starts anew. Otherwise old opens would count until the clock has caught up.
    if (now >= bucketSince && now - bucketSince < rapidMs) return
    if (now >= bucketSince && now - bucketSince < 2 * rapidMs) opens.turn()
    else opens.clear()
    bucketSince = now
  }

  /** Opens of the last ten seconds. The older bucket counts by the part of it that lies in these ten seconds. */
  function recentOpens(network: string, now: number): number {
    turnBucket(now)
    const part = 1 - (now - bucketSince) / rapidMs
    return (opens.newer.get(network) ?? 0) + part * (opens.older.get(network) ?? 0)
  }

  function count({ ip, subject }: ReaderFacts, by: 1 | -1): void {
    total += by
    if (ip !== null) perNetwork.count(networkOf(ip), by)
    if (subject !== null) perSubject.count(subject, by)
  }

  return {
    countAttempt({ ip }, now) {
      if (ip === null || maxOpensPer10s === Number.POSITIVE_INFINITY) return
      turnBucket(now)
      opens.newer.set(networkOf(ip), (opens.newer.get(networkOf(ip)) ?? 0) + 1)
    },
    reasonToReject({ ip, subject }, now) {
      const network = ip === null ? null : networkOf(ip)
      if (network !== null && recentOpens(network, now) > maxOpensPer10s) return 'too-rapid'
      if (total >= maxConnections) return 'connections'
      if (network !== null && perNetwork.isFull(network)) return 'per-ip'
      if (subject !== null && perSubject.isFull(subject)) return 'per-subject'
      return undefined
    },
    enter: (reader) => count(reader, 1),
    leave: (reader) => count(reader, -1),
  }
}

/** Counts the readers of each name. Without a limit it counts nothing, because ten thousand readers may come at once. */
function createRoom(max: number) {
  const here = new Map<string, number>()
  return {
    isFull: (name: string) => max < Number.POSITIVE_INFINITY && (here.get(name) ?? 0) >= max,
    count(name: string, by: 1 | -1): void {
      if (max === Number.POSITIVE_INFINITY) return
      const readers = (here.get(name) ?? 0) + by
      if (readers > 0) here.set(name, readers)
      else here.delete(name)
    },
  }
}
