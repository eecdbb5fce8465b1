import { RejoinError } from '@rejoin/protocol'
import type { OrdersCall, OrdersPage } from '../contract.ts'
import type { Commits } from './commit/commits.ts'
import type { Entry, Store } from './files/store.ts'
import { ByteWriter, unseal } from './format/bytes.ts'
import { orderKey, orderNumberOf, orderRange } from './format/keys.ts'

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
  const orders = new Map<number, StoredOrder>()
  let last = 0
  for (const { key, value } of store.range(orderRange.start, orderRange.end)) {
    const order = openOrder(key, value)
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
    await commits.submit({
      size: 1 + dropped.length,
      apply(draft) {
        draft.change({ puts: [sealOrder(orderKey(number), order)], removals: dropped.map(orderKey) })
        return undefined
      },
    })
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

interface StoredOrder {
  readonly text: string
  readonly until: number
}

const writer = new ByteWriter()

function sealOrder(key: Buffer, { text, until }: StoredOrder): Entry {
  // 0 stands for ever: there is no number for infinity.
  writer.number(Number.isFinite(until) ? Math.max(1, Math.ceil(until)) : 0)
  writer.text(text)
  return { key, value: writer.seal(key) }
}

function openOrder(key: Buffer, sealed: Buffer): StoredOrder | undefined {
  const reader = unseal(key, sealed)
  if (!reader) return undefined
  const until = reader.number() || Number.POSITIVE_INFINITY
  return { until, text: reader.text() }
}
