import { ConnectionStatus, useEventStream } from '@rejoin/client/react'
import '@rejoin/client/status.css'
import { applyEvent } from '../apply-event.ts'
import { type Order, type OrderEvents, type Orders, statuses } from '../events.ts'
import './board.css'

const url = '/events/orders'

/** The page: the orders up to `cursor`, and what happens to them from there on. */
export function Board({ cursor, orders: initial }: Loaded) {
  const { value: orders, stale } = useEventStream<OrderEvents, Orders>(url, {
    // The page was made from the orders up to here. The stream brings what happened since.
    from: cursor,
    initial,
    reduce: applyEvent,
    // Events are gone, after a long absence say: the hub sends the orders along.
    onSync: async ({ snapshot }) => (snapshot as Orders | undefined) ?? (await loadOrders()).orders,
    // All tabs of a browser read through one connection. Nobody signs in here, so that needs no name of a user.
    shareAcrossTabs: true,
    credentials: 'omit',
  })
  return (
    <main>
      <header>
        <h1>Orders</h1>
        <ConnectionStatus source={url} />
      </header>
      <div className="columns" data-stale={stale}>
        {statuses.map((status) => (
          <Column
            key={status}
            title={status}
            orders={Object.values(orders).filter((order) => order.status === status)}
          />
        ))}
      </div>
      <footer>
        <button type="button" onClick={() => fetch('/orders', { method: 'POST' })}>
          Place an order
        </button>
        <button type="button" onClick={() => fetch('/cut', { method: 'POST' })}>
          Cut the connection for 5 s
        </button>
      </footer>
    </main>
  )
}

function Column({ title, orders }: { title: string; orders: Order[] }) {
  return (
    <section aria-label={title}>
      <h2>
        {title} <small>{orders.length}</small>
      </h2>
      <ul>
        {orders.map(({ id, what }) => (
          <li key={id}>
            <b>{id}</b> {what}
          </li>
        ))}
      </ul>
    </section>
  )
}

export interface Loaded {
  cursor: string
  orders: Orders
}

export async function loadOrders(): Promise<Loaded> {
  const response = await fetch('/orders')
  return response.json()
}
