import { RejoinError } from '@rejoin/protocol'
import type { OrdersCall, OrdersPage, PutIfAbsent } from '../contract.ts'
import { createValueMap } from '../values.ts'
import type { Commits } from './commit/commits.ts'
import type { Entry, Store } from './files/store.ts'
import { ByteWriter, unseal } from './format/bytes.ts'
import { nameOf, orderKey, orderNumberOf, orderRange, valueKey, valueRange } from './format/keys.ts'

// These take about 2 MB. For more revocations than that, the operator should change the signing key.
const maxOrders = 10_000
const ordersPerPage = 500

/**
 * The orders of the one hub that uses the log, in the store. Without them, a restart would give revoked rights back. All orders
 * are in memory as well.
 */
export function createStoredOrders(
  store: Store,
  commits: Commits,
  now: () => number,
): (call: OrdersCall) => Promise<OrdersPage> {
  const orders = new Map<number, StoredText>()
  let last = 0
  for (const { key, value } of store.range(orderRange.start, orderRange.end)) {
    const order = openText(key, value)
    last = orderNumberOf(key)
    if (order) orders.set(last, order)
  }

  function dropExpired(): number[] {
    const expired = [...orders].filter(([, { until }]) => until <= now()).map(([number]) => number)
    for (const number of expired) orders.delete(number)
    return expired
  }

  async function post(text: string, until = Number.POSITIVE_INFINITY): Promise<number> {
    const dropped = dropExpired()
    if (orders.size >= maxOrders) {
      throw new RejoinError('There is no room for more revocations. Sign with a new key instead.', {
        code: 'overloaded',
      })
    }
    last += 1
    const number = last
    const order = { text, until }
    await change(commits, { puts: [sealText(orderKey(number), order)], removals: dropped.map(orderKey) })
    orders.set(number, order)
    return number
  }

  return async ({ after, order, until }) => {
    const posted = order === undefined ? undefined : await post(order, until)
    const found: { id: string; order: string }[] = []
    for (const [number, { text }] of last > Number(after) ? orders : []) {
      if (number > Number(after)) found.push({ id: String(number), order: text })
      if (found.length === ordersPerPage) break
    }
    return { ...(posted === undefined ? {} : { posted: String(posted) }), orders: found, nodes: 1, confirmed: 1 }
  }
}

/** `putIfAbsent` in the store, so that a restart does not bring a used ticket back. All texts are in memory as well. */
export function createStoredValues(store: Store, commits: Commits, now: () => number): PutIfAbsent {
  const values = createValueMap(now)
  const pending = new Map<string, Promise<undefined>>()
  for (const { key, value } of store.range(valueRange.start, valueRange.end)) {
    const found = openText(key, value)
    if (found) values.restore(nameOf(key), found.text, found.until)
  }

  return async (name, text, forMs) => {
    const standing = values.get(name)
    if (standing !== undefined) {
      // When the commit of that text fails, nothing is stored, and the caller has to ask again.
      await pending.get(name)
      return standing
    }
    const { until, dropped } = values.add(name, text, forMs)
    const removals = dropped.filter((each) => each !== name).map(valueKey)
    const stored = change(commits, { puts: [sealText(valueKey(name), { text, until })], removals })
    pending.set(name, stored)
    try {
      await stored
    } catch (error) {
      values.remove(name)
      throw error
    } finally {
      pending.delete(name)
    }
    return text
  }
}

function change(
  commits: Commits,
  changes: { readonly puts: Entry[]; readonly removals: Buffer[] },
): Promise<undefined> {
  return commits.submit({
    size: 1 + changes.removals.length,
    apply(draft) {
      draft.change(changes)
      return undefined
    },
  })
}

interface StoredText {
  readonly text: string
  readonly until: number
}

const writer = new ByteWriter()

function sealText(key: Buffer, { text, until }: StoredText): Entry {
  // 0 means without end: there is no number for infinity.
  writer.number(Number.isFinite(until) ? Math.max(1, Math.ceil(until)) : 0)
  writer.text(text)
  return { key, value: writer.seal(key) }
}

function openText(key: Buffer, sealed: Buffer): StoredText | undefined {
  const reader = unseal(key, sealed)
  if (!reader) return undefined
  const until = reader.number() || Number.POSITIVE_INFINITY
  return { until, text: reader.text() }
}
