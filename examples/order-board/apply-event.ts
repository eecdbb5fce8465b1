import type { AnyEvent } from '@rejoin/client'
import type { OrderEvents, Orders } from './events.ts'

/** The orders after an event. The same event a second time changes nothing: a snapshot may hold it already. */
export function applyEvent(orders: Orders, event: AnyEvent<OrderEvents>): Orders {
  if (event.type === 'placed') return { ...orders, [event.data.id]: event.data }
  const order = orders[event.data.id]
  return order ? { ...orders, [order.id]: { ...order, status: event.data.status } } : orders
}
