import { attachTo } from '@rejoin/client/testing'
import { createTestHub } from '@rejoin/hub/testing'
import { expect, onTestFinished, test } from 'vitest'
import { createStreamStore, type StoreOptions } from '../../src/bindings/stream-store.ts'

const url = 'http://app.example/events/orders'

/** Anna may read the orders, Ben may not. */
async function hubOfAnna() {
  const signedIn = { user: 'anna' }
  const hub = attachTo(
    await createTestHub({
      authorize({ headers }) {
        const user = headers.get('Authorization')?.slice(7) ?? signedIn.user
        return { subject: user, subscribe: user === 'anna' ? ['*'] : ['others'] }
      },
    }),
  )
  onTestFinished(hub.close)
  return { hub, signedIn }
}

function component(options: StoreOptions) {
  const seen: unknown[] = []
  const store = createStreamStore(url, { ...options, onEvent: ({ data }) => void seen.push(data) }, true)
  const unmount = store.subscribe(() => undefined)
  return { seen, unmount, view: store.getSnapshot }
}

const credentials: Record<string, (user: string) => StoreOptions> = {
  'a token': (token) => ({ token }),
  'a token function': (user) => ({ token: () => user }),
  'a cookie': () => ({}),
  'an identity': (identity) => ({ identity }),
}
const cases = Object.keys(credentials).flatMap((kind) => [0, 300, 1500].map((gapMs) => [kind, gapMs] as const))

test.each(cases)(
  'with a hub in the process of a test too, the next user with %s after %i ms gets nothing of the one before',
  async (kind, gapMs) => {
    const { hub, signedIn } = await hubOfAnna()
    const anna = component(credentials[kind]!('anna'))
    await hub.settle()
    await hub.publish('orders', { data: 1 })
    expect(anna.seen).toEqual([1])
    anna.unmount()
    signedIn.user = 'ben'
    if (gapMs) await hub.advance(gapMs)
    const ben = component(credentials[kind]!('ben'))
    onTestFinished(ben.unmount)
    await hub.settle()
    await hub.publish('orders', { data: 2 })
    expect(ben.view()).toMatchObject({ state: 'closed', closeReason: 'http-403', events: [] })
    expect([anna.seen, ben.seen]).toEqual([[1], []])
  },
)

test('a component of one test is not there in the next, even when it was never unmounted', async () => {
  const first = await hubOfAnna()
  const left = component({ identity: 'anna' })
  await first.hub.settle()
  await first.hub.close()
  const { hub } = await hubOfAnna()
  const next = component({ identity: 'anna' })
  onTestFinished(next.unmount)
  await hub.settle()
  await hub.publish('orders', { data: 1 })
  expect([left.seen, next.seen]).toEqual([[], [1]])
})
