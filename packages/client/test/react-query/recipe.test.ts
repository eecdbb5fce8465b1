import { QueryClient, QueryClientProvider, useQuery, useQueryClient } from '@tanstack/react-query'
import { createElement, useRef } from 'react'
import { expect, test } from 'vitest'
import { useEventStream } from '../../src/react/index.ts'
import { shows, useDocument } from '../support/document.ts'
import { render } from '../support/react.ts'
import { hello } from '../support/scripted-server.ts'
import { deferred, server, useStage } from '../support/stage.ts'

useStage()
useDocument()

// The recipe of docs/guides/tanstack-query.md, with a server of the test's.

type Events = { placed: string }
type Orders = readonly string[]
const queryKey = ['orders']
let fetchOrders: () => Promise<Orders>
let seen = 0

function applyEvent(orders: Orders, { data }: { data: string }): Orders {
  return orders.includes(data) ? orders : [...orders, data]
}

function useOrders() {
  const client = useQueryClient()
  const arrived = useRef<{ data: string }[]>([])
  const { state } = useEventStream<Events>(server.url, {
    keep: 0,
    onEvent(event) {
      seen++
      arrived.current.push(event)
      client.setQueryData<Orders>(queryKey, (orders) => orders && applyEvent(orders, event))
    },
    onSync: () => client.invalidateQueries({ queryKey }),
  })
  return useQuery({
    queryKey,
    enabled: state === 'connected',
    staleTime: Infinity,
    async queryFn() {
      arrived.current = []
      const orders = await fetchOrders()
      return arrived.current.reduce(applyEvent, orders)
    },
  })
}

function Page() {
  const { data } = useOrders()
  return data ? `orders: ${data.join(' ')}` : 'loading'
}

const placed = (id: string) => [`id: ${id}`, 'event: placed', `data: "${id}"`]

test('a query follows its stream, also while it loads, and loads again when events are gone', async () => {
  const first = deferred<Orders>()
  const second = deferred<Orders>()
  const asked = deferred()
  let fetches = 0
  fetchOrders = () => {
    asked.resolve()
    return fetches++ ? second.promise : first.promise
  }
  const { element } = await render(
    createElement(QueryClientProvider, { client: new QueryClient() }, createElement(Page)),
  )
  const visit = await server.stream()
  expect(fetches).toBe(0)
  visit.send(...hello())
  await asked.promise
  // Published while the response, which does not have it, is on its way.
  visit.send(...placed('b'))
  await expect.poll(() => seen, { interval: 5 }).toBe(1)
  first.resolve(['a'])
  await shows(element, 'orders: a b')
  visit.send(...placed('c'))
  await shows(element, 'orders: a b c')
  visit.send('id: g', 'event: sync-required', 'data: {"reason":"expired","channels":["orders"]}')
  visit.send(...placed('e'))
  await expect.poll(() => fetches).toBe(2)
  second.resolve(['a', 'b', 'c', 'd'])
  await shows(element, 'orders: a b c d e')
})
