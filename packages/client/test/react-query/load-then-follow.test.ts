import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub, type Hub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import * as reactQuery from '@tanstack/react-query'
import { transform } from 'esbuild'
import * as react from 'react'
import * as jsxRuntime from 'react/jsx-runtime'
import { expect, onTestFinished, test } from 'vitest'
import { readText } from '../../../../test/support/repository.ts'
import * as bindings from '../../src/react/index.ts'
import { shows, useDocument } from '../support/document.ts'
import { render as renderPage, renderStrictly } from '../support/react.ts'

useDocument()

test('docs/guides/load-then-follow.md: a component shows what is published while its state loads, and after that', async () => {
  const { hub, url } = await serve(async (hub) => {
    const cursor = await hub.cursor('orders/42')
    await hub.publish('orders/42', { type: 'changed', data: { status: 'packed' } })
    return { cursor, order: { status: 'paid' } }
  })
  const { OrderPage } = await runBlock('// order.tsx', url)
  const { element } = await renderStrictly(react.createElement(OrderPage, { id: '42' }))
  await shows(element, 'Order 42 is packed.')
  await hub.publish('orders/42', { type: 'changed', data: { status: 'shipped' } })
  await shows(element, 'Order 42 is shipped.')
})

test('docs/guides/load-then-follow.md: a component that gets another id shows the state of that id, whichever loads last', async () => {
  let answerLate = () => {}
  const late = new Promise<void>((resolve) => {
    answerLate = resolve
  })
  const { hub, url } = await serve(async (hub, id) => {
    if (id === '41') await late
    return { cursor: await hub.cursor(`orders/${id}`), order: { status: `paid as ${id}` } }
  })
  const { OrderPage } = await runBlock('// order.tsx', url)
  const page = (id: string) => react.createElement(react.StrictMode, null, react.createElement(OrderPage, { id }))
  const { element, render } = await renderPage(page('41'))
  render(page('42'))
  await shows(element, 'Order 42 is paid as 42.')
  render(page('43'))
  await shows(element, 'Order 43 is paid as 43.')
  answerLate()
  await hub.publish('orders/43', { type: 'changed', data: { status: 'shipped' } })
  await shows(element, 'Order 43 is shipped.')
})

test('docs/guides/load-then-follow.md: a query shows what is published while it loads, and while it loads again', async () => {
  const move = (hub: Hub, id: string, status: string) =>
    hub.publish('orders', { type: 'changed', data: { id, status } })
  let loads = 0
  let answer: () => Promise<void> = async () => undefined
  const { hub, url } = await serve(async (hub) => {
    const cursor = await hub.cursor('orders')
    loads += 1
    await move(hub, 'a', `moved ${loads}`)
    await answer()
    return { cursor, orders: {} }
  })
  const { useOrders } = await runBlock('// orders.tsx', url)
  const client = new reactQuery.QueryClient()
  function Page() {
    const orders = useOrders().data?.orders ?? {}
    return Object.values(orders as Record<string, { id: string; status: string }>)
      .map(({ id, status }) => `${id} ${status}`)
      .join(', ')
  }
  const page = () => react.createElement(reactQuery.QueryClientProvider, { client }, react.createElement(Page))
  const first = await renderStrictly(page())
  await shows(first.element, 'a moved 1')

  // The answer of the second load is older than this event, which has arrived.
  answer = async () => {
    await move(hub, 'b', 'placed')
    await shows(first.element, 'a moved 2, b placed')
  }
  await client.refetchQueries()
  await shows(first.element, 'a moved 2, b placed')

  first.unmount()
  await move(hub, 'b', 'shipped')
  // The cache is as old as the component that has left, and so is its cursor.
  await expect.poll(() => [...hub.admin.connections()].length).toBe(0)
  const second = await renderStrictly(page())
  await shows(second.element, 'a moved 2, b shipped')
  expect(loads).toBe(2)
})

/** A hub, and beside it the state that pages load. */
async function serve(load: (hub: Hub, id: string) => Promise<object>): Promise<{ hub: Hub; url: string }> {
  const hub = await createHub({ log: memoryLog() })
  const readers = nodeHandler(hub)
  const listener: RequestListener = (request, response) => {
    if (!request.url?.startsWith('/orders')) readers(request, response)
    else void load(hub, request.url.slice('/orders/'.length)).then((loaded) => response.end(JSON.stringify(loaded)))
  }
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await hub.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { hub, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

/** The exports of the block of the guide that begins with this line, whose addresses are those of a site. */
// biome-ignore lint/suspicious/noExplicitAny: a guide exports whatever it likes.
async function runBlock(begin: string, site: string): Promise<any> {
  const guide = readText('docs/guides/load-then-follow.md')
  const block = guide.slice(guide.indexOf(begin), guide.indexOf('\n```', guide.indexOf(begin)))
  const located = block.replaceAll(/(['`])(?=\/(?:events|orders))/g, `$1${site}`)
  const { code } = await transform(located, { loader: 'tsx', format: 'cjs', jsx: 'automatic' })
  const module = { exports: {} }
  const packages: Record<string, unknown> = {
    react,
    'react/jsx-runtime': jsxRuntime,
    '@rejoin/client/react': bindings,
    '@tanstack/react-query': reactQuery,
  }
  new Function('require', 'module', 'exports', code)((name: string) => packages[name], module, module.exports)
  return module.exports
}
