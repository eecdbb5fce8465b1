import { networkOf } from './network.ts'
import type { ReaderFacts } from './observation.ts'

export interface LimitOptions {
  /**
   * Streams open at once. One more is turned away with `overloaded`.
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
   * Streams one address may open in ten seconds. A client that reconnects in a loop is turned away until it slows down.
   * @defaultValue Infinity
   */
  maxOpensPer10s?: number
  /**
   * Bytes of poll answers that may be in memory at once, because they are being collected or their readers have not taken
   * them. When there is little room, answers are shorter and readers poll more often. When there is none, answers that were
   * not taken for a second or more are given up, and a poll may be turned away with `overloaded`.
   * @defaultValue 33554432
   */
  maxAnswerBytes?: number
  /**
   * Bytes of bodies of publishes that may be in memory at once. Beyond that, the one that began first and is not whole yet is
   * refused with `overloaded`.
   * @defaultValue 33554432
   */
  maxIncomingBytes?: number
}

/** Counts who is here, and says who may not come in. */
export interface Admission {
  /** Somebody is at the door. Counted whether or not it opens, so that a loop of refusals stays refused. */
  knock(reader: ReaderFacts, now: number): void
  /** Why this reader is turned away; undefined when it is welcome. */
  refuse(reader: ReaderFacts, now: number): 'connections' | 'per-ip' | 'per-subject' | 'too-rapid' | undefined
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
  // Two buckets of time, the older one thrown away whole: memory is bounded by the opens of twenty seconds.
  let opens = new Map<string, number>()
  let opensBefore = new Map<string, number>()
  let bucketSince = 0

  function turnBucket(now: number): void {
    // A clock that was set back starts anew: counted against it, nobody would be let in until it has caught up.
    if (now >= bucketSince && now - bucketSince < rapidMs) return
    opensBefore = now >= bucketSince && now - bucketSince < 2 * rapidMs ? opens : new Map()
    opens = new Map()
    bucketSince = now
  }

  /** Opens of the last ten seconds, the older bucket counted by the part of it that is still in them. */
  function recentOpens(network: string, now: number): number {
    turnBucket(now)
    const part = 1 - (now - bucketSince) / rapidMs
    return (opens.get(network) ?? 0) + part * (opensBefore.get(network) ?? 0)
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
    knock({ ip }, now) {
      if (ip === null || maxOpensPer10s === Number.POSITIVE_INFINITY) return
      turnBucket(now)
      opens.set(networkOf(ip), (opens.get(networkOf(ip)) ?? 0) + 1)
    },
    refuse({ ip, subject }, now) {
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
