// @vitest-environment happy-dom
import { attachTo } from '@rejoin/client/testing'
import { createTestHub } from '@rejoin/hub/testing'
import { createRoot } from 'react-dom/client'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { OrderEvents, Orders } from './events.ts'
import { Board } from './page/board.tsx'

const tea = { id: 'A-1', what: 'Tea', status: 'placed' } as const
const mug = { id: 'A-2', what: 'Blue mug', status: 'placed' } as const

test('the board shows a countdown during a cut, and then catches up', async () => {
  const { hub, page } = await openBoard()
  await hub.cut()
  expect(page.textContent).toMatch(/Reconnecting in \d s…/)
  await hub.publish('orders', { type: 'placed', data: mug })
  await hub.heal()
  await hub.advance(60_000)
  expect(page.textContent).toContain('Blue mug')
})

test('a release of the server costs the board nothing', async () => {
  const { hub, page } = await openBoard()
  await hub.restart()
  await hub.publish('orders', { type: 'moved', data: { id: 'A-1', status: 'shipped' } })
  await hub.advance(60_000)
  expect(column(page, 'shipped')).toContain('Tea')
  expect(page.querySelector('[role=img]')?.getAttribute('aria-label')).toBe('Live')
})

test('after a long absence the board shows the orders of the snapshot', async () => {
  const { hub, page } = await openBoard({ 'A-2': { ...mug, status: 'packed' } })
  await hub.cut()
  await hub.publish('orders', { type: 'placed', data: mug })
  await hub.expire()
  await hub.heal()
  await hub.advance(60_000)
  expect([column(page, 'placed'), column(page, 'packed')]).toEqual(['placed 0', 'packed 1A-2 Blue mug'])
})

test('a board whose heartbeats stay away says that it may be out of date', async () => {
  const { hub, page } = await openBoard()
  await hub.slow(0)
  const seen = new Set<string>()
  for (let second = 0; second < 60; second += 1) {
    await hub.advance(1000)
    seen.add(page.querySelector('.rejoin-status')?.textContent ?? '')
  }
  expect([...seen].join()).toContain('May be out of date')
})

test('a board whose rights are gone asks its user to sign in', async () => {
  const { hub, page } = await openBoard()
  await hub.revoke()
  await hub.advance(60_000)
  expect(page.textContent).toContain('Signed out')
})

/** The board as a page shows it that has loaded one order, and the hub that it reads from. */
async function openBoard(snapshot: Orders = {}) {
  const hub = attachTo(await createTestHub<{ orders: OrderEvents }>({ snapshot: () => snapshot, heartbeatMs: 5000 }))
  onTestFinished(hub.close)
  const { id } = await hub.publish('orders', { type: 'placed', data: tea })
  const page = document.body.appendChild(document.createElement('div'))
  const root = createRoot(page)
  onTestFinished(() => root.unmount())
  root.render(<Board cursor={id} orders={{ [tea.id]: tea }} />)
  await vi.waitFor(() => expect(page.textContent).toContain('Tea'))
  await hub.settle()
  expect(page.querySelector('[role=img]')?.getAttribute('aria-label')).toBe('Live')
  return { hub, page }
}

function column(page: HTMLElement, title: string) {
  return page.querySelector(`[aria-label=${title}]`)?.textContent
}
