import { Generations } from '../../generations.ts'
import type { ReaderFacts } from '../observation.ts'
import { networkOf } from './network.ts'

export interface LimitOptions {
  /**
   * Streams open at once. One more is rejected with `overloaded`.
   * @defaultValue Infinity
   */
  maxConnections?: number
  /**
   * Streams open at once from one address; for IPv6, from one /64.
   * @defaultValue Infinity
   */
  maxPerIp?: number
  /**
   * Streams open at once for one subject.
   * @defaultValue Infinity
   */
  maxPerSubject?: number
  /**
   * How often in a row one client may return well before the time that it was told (`retry:`). One more is for free every two
   * seconds. A client that returns more often is sent away, each time for twice as long, up to a minute. A client is known by
   * its client id, else by its cursor and its address. `Infinity` lets every client in.
   * @defaultValue 10
   */
  maxRapidReturns?: number
  /**
   * Streams one address may open in ten seconds, whoever opens them. It also stops clients that send neither a cursor nor a
   * client id, and it counts all readers behind one address as one: set it where no office or proxy can be behind one.
   * @defaultValue Infinity
   */
  maxOpensPer10s?: number
  /**
   * Bytes of streams that may be in memory at once because their readers have not taken them: what each read to catch up, not
   * what all are pushed live. Beyond that, streams that catch up wait. When that lasts for a second, the streams whose readers
   * took the least are closed (`overloaded`), and their readers come back with their cursors.
   * @defaultValue 33554432
   */
  maxStreamBytes?: number
  /**
   * Bytes of poll answers that may be in memory at once, because they are being collected or their readers have not taken
   * them. When there is little room, answers are shorter and readers poll more often. When there is none, answers that were
   * not taken for a second or more are given up, and a poll may be rejected with `overloaded`.
   * @defaultValue 33554432
   */
  maxAnswerBytes?: number
  /**
   * Bytes of publish bodies that may be in memory at once. Beyond that, the body that began first and is not complete yet is
   * rejected with `overloaded`.
   * @defaultValue 33554432
   */
  maxIncomingBytes?: number
}

/** Counts connected readers, and decides which new readers are rejected. */
export interface Admission {
  /** A reader tries to connect. Counted whether or not it is let in, so that a loop of attempts stays rejected. */
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
  const here = new Map<string, number>()
  let total = 0
  // Of ten seconds each, so that memory is bounded by the opens of twenty seconds.
  const opens = new Generations<number>()
  let bucketSince = 0

  function turnBucket(now: number): void {
    // A clock that was set back starts anew: counted against it, nobody would be let in until it has caught up.
    if (now >= bucketSince && now - bucketSince < rapidMs) return
    if (now >= bucketSince && now - bucketSince < 2 * rapidMs) opens.turn()
    else opens.clear()
    bucketSince = now
  }

  /** Opens of the last ten seconds, the older bucket counted by the part of it that is still in them. */
  function recentOpens(network: string, now: number): number {
    turnBucket(now)
    const part = 1 - (now - bucketSince) / rapidMs
    return (opens.newer.get(network) ?? 0) + part * (opens.older.get(network) ?? 0)
  }

  function change(key: string, by: number): void {
    const count = (here.get(key) ?? 0) + by
    if (count > 0) here.set(key, count)
    else here.delete(key)
  }

  function keysOf({ ip, subject }: ReaderFacts): string[] {
    return [...(ip === null ? [] : [`ip ${networkOf(ip)}`]), ...(subject === null ? [] : [`subject ${subject}`])]
  }

  return {
    countAttempt({ ip }, now) {
      if (ip === null || maxOpensPer10s === Number.POSITIVE_INFINITY) return
      turnBucket(now)
      opens.newer.set(networkOf(ip), (opens.newer.get(networkOf(ip)) ?? 0) + 1)
    },
    reasonToReject({ ip, subject }, now) {
      if (ip !== null && recentOpens(networkOf(ip), now) > maxOpensPer10s) return 'too-rapid'
      if (total >= maxConnections) return 'connections'
      if (ip !== null && (here.get(`ip ${networkOf(ip)}`) ?? 0) >= maxPerIp) return 'per-ip'
      if (subject !== null && (here.get(`subject ${subject}`) ?? 0) >= maxPerSubject) return 'per-subject'
      return undefined
    },
    enter(reader) {
      total += 1
      for (const key of keysOf(reader)) change(key, 1)
    },
    leave(reader) {
      total -= 1
      for (const key of keysOf(reader)) change(key, -1)
    },
  }
}
