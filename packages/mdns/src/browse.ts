import type { Cancel } from '@rejoin/hub/internal'
import { type DnsRecord, type KnownAnswer, type Query, type Question, sameName } from './network.ts'
import { createQuestions, isWritable } from './questions.ts'
import {
  createHosts,
  type Held,
  type HostKey,
  hold,
  type InstanceRecords,
  markAsked,
  renewed,
  takeBack,
} from './records.ts'
import { type Fact, type Service, sortAddresses } from './service.ts'
import { allTypes, type ServiceType, serviceType } from './service-type.ts'
import type { Timing } from './timing.ts'
import { readTxt, type Txt, textBytes } from './txt.ts'

/**
 * Follows the services of one type: records in, facts out. A browse remembers the last fact of each service. So a
 * record that is announced again makes no fact, and a changed port, address or TXT does. A browse asks until a service
 * is complete, asks again before a record expires, and takes a service as gone when nobody answers.
 */
export interface Browse {
  /** Asks for the first time, and then whenever a question is due. */
  start(): void
  /** Takes the records of one packet. */
  receive(records: readonly DnsRecord[], sender: string): void
  /** The facts that are true now, one for each service. */
  current(): Fact[]
  /** Whether services or their TXT were left out because there was too much of them. */
  readonly overflowed: boolean
  stop(): void
}

export interface BrowseOptions {
  readonly type: ServiceType
  readonly timing: Timing
  /** The most services that are followed at once, and half of them for one sender. A network can announce any number. */
  readonly maxServices: number
  ask(query: Query): void
  tell(facts: readonly Fact[]): void
}

interface Instance extends InstanceRecords {
  readonly name: string
  /** The full name, as records have it. */
  readonly fullName: string
  /** The address that announced the instance first. */
  readonly sender: string
  /** The last fact that was told of the instance, while it is true. */
  stated: Fact | undefined
  /** Told as removed although a PTR record still names it. It counts again when it is complete. */
  lost: boolean
  /**
   * Since when a record is missing, and when the instance is judged without that record; never, once it has been
   * judged.
   */
  incompleteSince: number | undefined
  settleAt: number
  /** When to ask for the missing record, and how often it was asked for. */
  askAt: number
  asked: number
}

const never = Number.POSITIVE_INFINITY
// The records of a service may arrive in several packets. The browse waits this long for them before it tells anything.
const settleMs = 200
// Other packets of the same answer arrive sooner than this.
const askMissingMs = 30
const maxMissingAsks = 5
// RFC 6763, section 6.2, wants a TXT record to have at most 1,300 bytes.
const txtBytesPerService = 4000
// A tick looks at every service. Questions that are due within this time are asked together, which also spares the
// network.
const tickPauseMs = 20
// The longest pause between queries (RFC 6762, section 5.2).
const longestPauseMs = 3_600_000

export function createBrowse({ type, timing, maxServices, ask, tell }: BrowseOptions): Browse {
  const typeName = sameName(type)
  const instances = new Map<string, Instance>()
  const hosts = createHosts()
  /** How many instances each sender has announced. */
  const senders = new Map<string, number>()
  let txtBytes = 0
  let queryAt = never
  let pauseMs = 1000
  let wakeAt = never
  let tickedAt = Number.NEGATIVE_INFINITY
  let cancel: Cancel = () => undefined
  let overflowed = false

  function receive(records: readonly DnsRecord[], sender: string): void {
    const now = timing.now()
    const touched = new Set<Instance>()
    // In this order: PTR records name the instances of SRV and TXT records, and SRV records name the hosts of
    // addresses.
    for (const record of records) if (record.type === 'PTR') take(takePointer(record, now, sender))
    for (const record of records)
      if (record.type === 'SRV' || record.type === 'TXT') take(takeDetail(record, now, sender))
    const changedHosts = new Set<HostKey>()
    let dueAt = never
    for (const record of records) {
      const taken = record.type === 'A' || record.type === 'AAAA' ? hosts.take(record, now) : undefined
      if (taken?.isChanged) changedHosts.add(taken.host)
      dueAt = Math.min(dueAt, taken?.dueAt ?? never)
    }
    // Only the services of these hosts: with 2,000 services, judging all of them at each record would take all of the
    // time.
    if (changedHosts.size > 0)
      for (const instance of instances.values()) if (isOn(instance, changedHosts)) take(instance)
    judgeAll(touched, now)
    wakeBy(Math.min(dueAt, nextWake(touched)))

    function take(instance: Instance | undefined): void {
      if (instance) touched.add(instance)
    }
  }

  function takePointer(record: DnsRecord & { type: 'PTR' }, now: number, sender: string): Instance | undefined {
    if (sameName(record.name) !== typeName) return undefined
    const instance = instanceOf(record.data, record.ttl > 0, sender)
    if (!instance) return undefined
    if (record.ttl === 0) takeBack(instance.ptr, now)
    else {
      instance.ptr = hold(record, record.data, now)
      if (!isWritable(instance.fullName, typeName)) renewDetails(instance, now)
    }
    return instance
  }

  /**
   * An instance that can be asked for only by its type is alive as long as it is named. Its responder need not add the
   * other records to that answer.
   */
  function renewDetails(instance: Instance, now: number): void {
    const { srv, txt } = instance
    if (srv) instance.srv = renewed(srv, now)
    if (txt) instance.txt = renewed(txt, now)
  }

  function takeDetail(record: DnsRecord & { type: 'SRV' | 'TXT' }, now: number, sender: string): Instance | undefined {
    if (type === allTypes) return undefined
    const instance = instanceOf(record.name, record.ttl > 0, sender)
    if (!instance) return undefined
    if (record.type === 'TXT') {
      if (record.ttl === 0) takeBack(instance.txt, now)
      else takeTxt(instance, hold(record, readTxt(record.data), now))
    } else if (record.ttl === 0) takeBack(instance.srv, now)
    else setSrv(instance, hold(record, { ...record.data, host: sameName(record.data.target) }, now))
    return instance
  }

  /** A TXT record for which there is no room is left out; the service is resolved without it. */
  function takeTxt(instance: Instance, txt: Held<Txt>): void {
    const more = textBytes(txt.data) - (instance.txt ? textBytes(instance.txt.data) : 0)
    if (txtBytes + more > maxServices * txtBytesPerService) overflowed = true
    else setTxt(instance, txt)
  }

  function setTxt(instance: Instance, txt: Instance['txt']): void {
    if (txt) txtBytes += textBytes(txt.data)
    if (instance.txt) txtBytes -= textBytes(instance.txt.data)
    instance.txt = txt
  }

  function setSrv(instance: Instance, srv: Instance['srv']): void {
    if (srv) hosts.want(srv.data.host)
    if (instance.srv) hosts.release(instance.srv.data.host)
    instance.srv = srv
  }

  function remove(key: string, instance: Instance): void {
    setSrv(instance, undefined)
    setTxt(instance, undefined)
    instances.delete(key)
    const left = (senders.get(instance.sender) ?? 0) - 1
    if (left > 0) senders.set(instance.sender, left)
    else senders.delete(instance.sender)
  }

  /** The instance with that name. Makes a new one when that is allowed and there is room. */
  function instanceOf(fullName: string, mayBeNew: boolean, sender: string): Instance | undefined {
    const key = sameName(fullName)
    const known = instances.get(key)
    if (known || !mayBeNew) return known
    const name = instanceName(key, fullName)
    if (name === undefined) return undefined
    const announced = senders.get(sender) ?? 0
    if (instances.size >= maxServices || announced >= Math.ceil(maxServices / 2)) {
      overflowed = true
      return undefined
    }
    senders.set(sender, announced + 1)
    const instance: Instance = {
      name,
      fullName: fullName.replace(/\.$/, ''),
      sender,
      stated: undefined,
      lost: false,
      incompleteSince: undefined,
      settleAt: never,
      askAt: never,
      asked: 0,
    }
    instances.set(key, instance)
    return instance
  }

  /** The full name without the type; undefined when the name is of another type. */
  function instanceName(key: string, fullName: string): string | undefined {
    if (type === allTypes) return typeOrNothing(key)
    if (!key.endsWith(`.${typeName}`)) return undefined
    const name = fullName
      .replace(/\.$/, '')
      .slice(0, -typeName.length - 1)
      .toWellFormed()
    return name === '' ? undefined : name
  }

  function judgeAll(touched: Iterable<Instance>, now: number): void {
    const facts = [...touched].flatMap((instance) => judge(instance, now) ?? [])
    if (facts.length > 0) tell(facts)
  }

  /** The new fact of an instance, if there is one. */
  function judge(instance: Instance, now: number): Fact | undefined {
    if (!instance.ptr) return undefined
    const named = { type, name: instance.name }
    if (type === allTypes) return state(instance, { event: 'found', service: named })
    const service = serviceOf(instance)
    const isSettled = settle(instance, service !== undefined && instance.txt !== undefined, now)
    if (!isSettled) return undefined
    if (service) {
      instance.lost = false
      return state(instance, { event: 'resolved', service })
    }
    if (instance.lost) return undefined
    if (instance.stated?.event === 'resolved') return loseSight(instance)
    return state(instance, { event: 'found', service: named })
  }

  /** Whether an instance can be judged: it is complete, or the wait for its missing records is over. */
  function settle(instance: Instance, isWhole: boolean, now: number): boolean {
    if (isWhole) {
      instance.incompleteSince = undefined
      instance.settleAt = never
      instance.askAt = never
      return true
    }
    if (instance.incompleteSince === undefined) {
      instance.incompleteSince = now
      instance.settleAt = now + settleMs
      instance.askAt = now + askMissingMs
      instance.asked = 0
    }
    if (now < instance.incompleteSince + settleMs) return false
    instance.settleAt = never
    return true
  }

  /** The fact, unless it was told last. */
  function state(instance: Instance, fact: Fact): Fact | undefined {
    if (JSON.stringify(fact) === JSON.stringify(instance.stated)) return undefined
    instance.stated = fact
    return fact
  }

  function loseSight(instance: Instance): Fact {
    instance.stated = undefined
    instance.lost = true
    return { event: 'removed', service: { type, name: instance.name } }
  }

  function serviceOf({ name, srv, txt }: Instance): Service | undefined {
    const addresses = sortAddresses(srv ? (hosts.get(srv.data.host)?.keys() ?? []) : [])
    const [ip] = addresses
    if (!srv || ip === undefined) return undefined
    const host = `${srv.data.host.toWellFormed()}.`
    return { type, name, host, port: srv.data.port, ip, addresses, txt: txt?.data ?? {} }
  }

  function tick(): void {
    const now = timing.now()
    wakeAt = never
    tickedAt = now
    const { changed, gone } = expire(now)
    judgeAll(changed, now)
    if (gone.length > 0) tell(gone)
    askDue(now)
    wakeBy(Math.min(queryAt, nextWake(instances.values())))
  }

  /**
   * Drops records that nobody has announced again. Returns the services that are gone with them, and the instances to
   * judge.
   */
  function expire(now: number): { changed: Instance[]; gone: Fact[] } {
    const changed: Instance[] = []
    const gone: Fact[] = []
    const changedHosts = hosts.expire(now)
    for (const [key, instance] of instances) {
      const wasNamed = instance.ptr !== undefined
      let isChanged = instance.settleAt <= now || isOn(instance, changedHosts)
      const hasExpired = (held: Held<unknown> | undefined) => held !== undefined && held.expiresAt <= now
      if ([instance.ptr, instance.srv, instance.txt].some(hasExpired)) isChanged = true
      if (hasExpired(instance.ptr)) instance.ptr = undefined
      if (hasExpired(instance.srv)) setSrv(instance, undefined)
      if (hasExpired(instance.txt)) setTxt(instance, undefined)
      const { ptr, srv, txt, stated, name } = instance
      if (ptr || (!wasNamed && (srv || txt))) {
        if (isChanged) changed.push(instance)
        continue
      }
      // Drops everything that is known of the service: a service that returns under this name may be another.
      remove(key, instance)
      if (stated) gone.push({ event: 'removed', service: { type, name } })
    }
    return { changed, gone }
  }

  function askDue(now: number): void {
    const questions = createQuestions(typeName)
    const isQueryDue = queryAt <= now
    if (isQueryDue) {
      queryAt = now + pauseMs
      pauseMs = Math.min(2 * pauseMs, longestPauseMs)
    }
    const again = new Set<Instance>()
    for (const instance of instances.values()) {
      for (const question of dueOf(instance, now)) {
        if (!questions.add(question)) again.add(instance)
      }
    }
    if (isQueryDue || again.size > 0) questions.add({ name: typeName, type: 'PTR' })
    for (const query of questions.queries(() => knownWithout(again, now))) ask(query)
  }

  /** The names that nobody has to send again: less than half of their lifetime has passed. */
  function* knownWithout(again: ReadonlySet<Instance>, now: number): Generator<KnownAnswer> {
    for (const instance of instances.values()) {
      const { ptr, fullName } = instance
      const leftMs = (ptr?.expiresAt ?? now) - now
      if (!ptr || leftMs <= ptr.ttlMs / 2 || again.has(instance)) continue
      yield { name: typeName, data: fullName, ttl: Math.round(leftMs / 1000) }
    }
  }

  /** The questions about an instance that are due, each marked as asked. */
  function dueOf(instance: Instance, now: number): Question[] {
    const due: Question[] = []
    const refresh = (held: Held<unknown> | undefined, question: Question) => {
      if (!held || held.askAt > now) return
      markAsked(held)
      due.push(question)
    }
    const { ptr, srv, txt, fullName } = instance
    refresh(ptr, { name: typeName, type: 'PTR' })
    refresh(srv, { name: fullName, type: 'SRV' })
    refresh(txt, { name: fullName, type: 'TXT' })
    const addresses = srv ? hosts.get(srv.data.host) : undefined
    for (const held of addresses?.values() ?? []) refresh(held, { name: srv?.data.target ?? '', type: held.type })
    if (ptr && instance.askAt <= now) {
      instance.asked += 1
      instance.askAt = instance.asked < maxMissingAsks ? now + 1000 * 2 ** (instance.asked - 1) : never
      if (!srv) due.push({ name: fullName, type: 'SRV' })
      if (!txt) due.push({ name: fullName, type: 'TXT' })
      if (srv && !addresses?.size) due.push(...addressQuestions(srv.data.target))
    }
    return due
  }

  /** When the next question or expiry of these instances is due. */
  function nextWake(some: Iterable<Instance>): number {
    let at = never
    for (const { ptr, srv, txt, settleAt, askAt } of some) {
      const addresses = srv ? (hosts.get(srv.data.host)?.values() ?? []) : []
      for (const held of [ptr, srv, txt, ...addresses]) if (held) at = Math.min(at, held.expiresAt, held.askAt)
      if (ptr) at = Math.min(at, askAt, settleAt)
    }
    return at
  }

  function wakeBy(dueAt: number): void {
    const at = Math.max(dueAt, tickedAt + tickPauseMs)
    if (at >= wakeAt) return
    wakeAt = at
    cancel()
    // Node's timers wait for at most 24.8 days. Nothing here is that far away, and a look every hour is enough.
    cancel = timing.after(Math.min(Math.max(at - timing.now(), 0), longestPauseMs), tick)
  }

  return {
    start() {
      // RFC 6762, section 5.2: machines that start together must not ask together.
      queryAt = timing.now() + 20 + 100 * timing.random()
      wakeBy(queryAt)
    },
    receive,
    current: () => [...instances.values()].flatMap(({ stated }) => stated ?? []),
    get overflowed() {
      return overflowed
    },
    stop() {
      cancel()
      instances.clear()
    },
  }
}

function isOn({ srv }: Instance, hosts: ReadonlySet<HostKey>): boolean {
  return srv !== undefined && hosts.has(srv.data.host)
}

function addressQuestions(name: string): Question[] {
  return [
    { name, type: 'A' },
    { name, type: 'AAAA' },
  ]
}

/** Undefined for text that is no service type: a network can announce anything as a type. */
function typeOrNothing(name: string): string | undefined {
  try {
    const type = serviceType(name)
    return sameName(type) === name ? type : undefined
  } catch {
    // Nobody could ask for such a type.
    return undefined
  }
}
