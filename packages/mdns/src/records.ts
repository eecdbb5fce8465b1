import { type DnsRecord, sameName } from './network.ts'
import type { Txt } from './txt.ts'

/** A record that is valid until it expires. The same record, announced again, replaces it. */
export interface Held<Data> {
  readonly data: Data
  readonly receivedAt: number
  readonly ttlMs: number
  expiresAt: number
  /** When to ask for the record again, and how often that was done. */
  askAt: number
  asked: number
}

/** The name of a host, as `sameName` gives it. */
export type HostKey = string

/** The records of one instance; each may be missing. */
export interface InstanceRecords {
  ptr?: Held<string> | undefined
  srv?: Held<{ readonly target: string; readonly host: HostKey; readonly port: number }> | undefined
  txt?: Held<Txt> | undefined
}

export function hold<Data>({ ttl }: Pick<DnsRecord, 'ttl'>, data: Data, now: number): Held<Data> {
  return heldFrom(now, data, Math.min(ttl * 1000, longestMs))
}

/** The record as if it had been announced again now. */
export function renewed<Data>({ data, ttlMs }: Held<Data>, now: number): Held<Data> {
  return heldFrom(now, data, ttlMs)
}

function heldFrom<Data>(now: number, data: Data, ttlMs: number): Held<Data> {
  const held = { data, receivedAt: now, ttlMs, expiresAt: now + ttlMs, askAt: 0, asked: 0 }
  held.askAt = nextAsk(held)
  return held
}

/**
 * Drops a record that was withdrawn after a short time, in which the browse asks for it: another responder that has the
 * record answers within 120 ms. RFC 6762, section 10.1, lets a querier that only listens wait for a second.
 */
export function takeBack(held: Held<unknown> | undefined, now: number): void {
  if (!held) return
  held.expiresAt = Math.min(held.expiresAt, now + graceMs)
  held.askAt = now
  held.asked = refreshAt.length
}

const graceMs = 300
const longestMs = 24 * 3_600_000
// RFC 6762, section 5.2: the shares of its lifetime after which a record is asked for again.
const refreshAt = [0.8, 0.85, 0.9, 0.95]

export function markAsked(held: Held<unknown>): void {
  held.asked += 1
  held.askAt = nextAsk(held)
}

function nextAsk({ receivedAt, ttlMs, asked }: Held<unknown>): number {
  const part = refreshAt[asked]
  return part === undefined ? Number.POSITIVE_INFINITY : receivedAt + part * ttlMs
}

/** The addresses of the hosts that services are on. */
export function createHosts() {
  const hosts = new Map<HostKey, Host>()

  return {
    get: (host: HostKey) => hosts.get(host)?.addresses,
    /** A service is on this host. Addresses of hosts without a service are ignored. */
    want(host: HostKey) {
      const known = hosts.get(host)
      if (known) known.services += 1
      else hosts.set(host, { services: 1, addresses: new Map() })
    },
    /** A service has left this host. A host without a service is dropped at once: records may name a new host in every packet. */
    release(host: HostKey) {
      const known = hosts.get(host)
      if (!known) return
      known.services -= 1
      if (known.services === 0) hosts.delete(host)
    },
    /** Takes an address record. Returns its effect on the host; undefined when that host is not wanted. */
    take(record: DnsRecord & { type: 'A' | 'AAAA' }, now: number): TakenAddress | undefined {
      const host = sameName(record.name)
      const addresses = hosts.get(host)?.addresses
      if (!addresses) return undefined
      const address = record.data.toLowerCase()
      const held = addresses.get(address)
      if (record.ttl === 0) {
        takeBack(held, now)
        return { host, isChanged: false, dueAt: held ? now : Number.POSITIVE_INFINITY }
      }
      let isChanged = false
      // RFC 6762, section 10.2: a record of the last second is part of the same answer.
      if (record.flush) {
        for (const [other, { type, receivedAt }] of addresses) {
          if (other === address || type !== record.type || now - receivedAt <= 1000) continue
          addresses.delete(other)
          isChanged = true
        }
      }
      if (!held && addresses.size >= maxAddresses) return { host, isChanged, dueAt: Number.POSITIVE_INFINITY }
      const taken = { ...hold(record, address, now), type: record.type }
      addresses.set(address, taken)
      return { host, isChanged: isChanged || !held, dueAt: Math.min(taken.askAt, taken.expiresAt) }
    },
    /** Drops addresses that nobody has announced again. Returns the hosts that had them. */
    expire(now: number): ReadonlySet<HostKey> {
      const changed = new Set<HostKey>()
      for (const [host, { addresses }] of hosts) {
        for (const [address, { expiresAt }] of addresses) {
          if (expiresAt > now) continue
          addresses.delete(address)
          changed.add(host)
        }
      }
      return changed
    },
  }
}

interface Host {
  services: number
  readonly addresses: Map<string, Held<string> & { readonly type: 'A' | 'AAAA' }>
}

export interface TakenAddress {
  readonly host: HostKey
  /** Whether the addresses of the host have changed. */
  readonly isChanged: boolean
  /** When the record has to be asked for again, or expires. */
  readonly dueAt: number
}

// Nobody can use a host with more addresses.
const maxAddresses = 32
