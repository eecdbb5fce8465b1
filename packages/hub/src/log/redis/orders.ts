import { RejoinError } from '@rejoin/protocol'
import type { OrdersCall, OrdersPage } from '../contract.ts'
import type { Ask } from './registry.ts'

/** Posts an order, if one is given, and reads the orders that this hub has not carried out yet. */
export async function exchangeOrders(ask: Ask, call: OrdersCall): Promise<OrdersPage> {
  const { after, forMs, order = '', until, reached = '' } = call
  const reply = await ask('orders', after, String(forMs), order, until === undefined ? '' : String(until), reached)
  const [posted = '', nodes, confirmed, ...entries] = reply as string[]
  if (posted === 'full') {
    throw new RejoinError('There is no room for more revocations. Sign with a new key instead.', {
      code: 'overloaded',
    })
  }
  const orders: { id: string; order: string }[] = []
  for (let index = 0; index + 1 < entries.length; index += 2) {
    orders.push({ id: entries[index] as string, order: entries[index + 1] as string })
  }
  return { posted, orders, nodes: Number(nodes), confirmed: Number(confirmed) }
}
