import { expect, test, vi } from 'vitest'
import { createApp, createSSRApp, defineComponent, effectScope, h, KeepAlive, nextTick, ref } from 'vue'
import { type EventOptions, useConnection, useEventStream } from '../../src/vue/index.ts'
import { mounted, newRoot, shows, useDocument } from '../support/document.ts'
import { hello, message } from '../support/scripted-server.ts'
import { server, useStage } from '../support/stage.ts'

useStage()
useDocument()

type Numbers = { message: number }

const url = ref<string | null>(null)
const token = ref<string>()
const identity = ref<string>()

const Sum = defineComponent({
  props: { onSync: { type: Function, default: undefined } },
  setup(props) {
    const { value, state } = useEventStream<Numbers, number>(url, () => ({
      ...(props.onSync ? { onSync: props.onSync as NonNullable<EventOptions<Numbers, number>['onSync']> } : {}),
      ...(token.value ? { token: token.value } : {}),
      identity: identity.value,
      initial: 0,
      reduce: (sum, { data }) => sum + data,
    }))
    return () => h('p', `${state.value} ${value.value}`)
  },
})

/** Renders into the page until the test is over. */
function mount(component: Parameters<typeof createApp>[0], props: Record<string, unknown> = {}) {
  url.value ??= server.url
  const app = createApp(component, props)
  const element = newRoot()
  app.mount(element)
  mounted.push({
    unmount() {
      app.unmount()
      url.value = null
      token.value = identity.value = undefined
    },
  })
  return { element, app }
}

test('every event of a burst reaches the reducer', async () => {
  const { element } = mount(Sum)
  const visit = await server.stream()
  visit.send(...hello())
  const burst = Array.from({ length: 500 }, (_, index) => message(`e${index}`, 1).join('\n'))
  visit.write(`${burst.join('\n\n')}\n\n`)
  await shows(element, 'connected 500')
})

test('components with the same URL share a stream, and a list is kept without a reducer', async () => {
  const List = defineComponent(() => {
    const { events } = useEventStream<Numbers>(url)
    return () => h('p', events.value.map(({ data }) => data).join(' '))
  })
  const { element } = mount(defineComponent(() => () => [h(List), h(Sum)]))
  const visit = await server.stream()
  for (const number of [1, 2, 3]) visit.send(...message(`e${number}`, number))
  await shows(element, '1 2 3connected 6')
  expect(server.visits()).toBe(1)
})

test('another token of the same user is used at once, by the same stream, from its cursor', async () => {
  identity.value = 'ada'
  token.value = 'first'
  const { element } = mount(Sum)
  const visit = await server.stream()
  expect(visit.headers.authorization).toBe('Bearer first')
  visit.send(...message('e1', 1))
  await shows(element, 'connected 1')
  token.value = 'second'
  const next = await server.stream()
  expect(next.headers).toMatchObject({ authorization: 'Bearer second', 'last-event-id': 'e1' })
  next.send(...message('e2', 2))
  await shows(element, 'connected 3')
})

test.each([
  ['token', token],
  ['identity', identity],
])('another user, whom the %s shows, starts anew', async (_, shown) => {
  shown.value = 'a'
  const { element } = mount(Sum)
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await shows(element, 'connected 1')
  shown.value = 'b'
  const next = await server.stream()
  expect(next.headers['last-event-id']).toBeUndefined()
  await visit.gone
  next.send(...message('e2', 2))
  await shows(element, 'connected 2')
})

test('of all components that one user leaves at the same time, none stays on the stream of that user', async () => {
  token.value = 'a'
  const { element } = mount(defineComponent(() => () => [h(Sum), h(Sum)]))
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await shows(element, 'connected 1connected 1')
  token.value = undefined
  const next = await server.stream()
  expect(next.headers.authorization).toBeUndefined()
  await shows(element, 'connected 0connected 0')
  await visit.gone
  expect(server.visits()).toBe(2)
})

test('another URL is another stream, and the first one is closed', async () => {
  const { element } = mount(Sum)
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await shows(element, 'connected 1')
  url.value = `${server.url}?second`
  const next = await server.stream()
  expect(next.url.searchParams.has('second')).toBe(true)
  next.send(...message('e9', 5))
  await shows(element, 'connected 5')
  await visit.gone
})

test('the result of onSync replaces the value', async () => {
  const onSync = vi.fn(async () => 100)
  const { element } = mount(Sum, { onSync })
  const visit = await server.stream()
  visit.send(...hello())
  visit.send(...message('e1', 1))
  visit.send('id: e5', 'event: sync-required', 'data: {"reason":"expired","channels":["orders"]}')
  visit.send(...message('e6', 3))
  await shows(element, 'connected 103')
  expect(onSync).toHaveBeenCalledTimes(1)
})

test('an onSync that comes later is called', async () => {
  const onSync = ref<() => number>()
  const { element } = mount(defineComponent(() => () => h(Sum, onSync.value ? { onSync: onSync.value } : {})))
  const visit = await server.stream()
  visit.send(...hello())
  visit.send(...message('e1', 1))
  await shows(element, 'connected 1')
  onSync.value = () => 100
  await nextTick()
  visit.send('id: e5', 'event: sync-required', 'data: {"reason":"expired","channels":["orders"]}')
  await shows(element, 'connected 100')
})

test('a component that is only kept by KeepAlive leaves its stream, and goes on at its cursor when it is shown again', async () => {
  const isShown = ref(true)
  const { element } = mount(defineComponent(() => () => h(KeepAlive, () => (isShown.value ? h(Sum) : []))))
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await shows(element, 'connected 1')
  isShown.value = false
  await visit.gone
  isShown.value = true
  const next = await server.stream()
  expect(next.headers['last-event-id']).toBe('e1')
  next.send(...message('e2', 2))
  await shows(element, 'connected 3')
  expect(server.visits()).toBe(2)
})

test('a component that KeepAlive keeps holds no stream open for the component of the next user', async () => {
  const user = ref('ada')
  const readerOf = (name: string) =>
    defineComponent(() => {
      const { events, state } = useEventStream<Numbers>(url, { token: () => name })
      return () => h('p', `${state.value} ${events.value.length}`)
    })
  const [Ada, Ben] = [readerOf('ada'), readerOf('ben')]
  const { element } = mount(defineComponent(() => () => h(KeepAlive, () => h(user.value === 'ada' ? Ada : Ben))))
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await shows(element, 'connected 1')
  user.value = 'ben'
  const next = await server.stream()
  await visit.gone
  expect(next.headers).toMatchObject({ authorization: 'Bearer ben' })
  next.send(...hello())
  await shows(element, 'connected 0')
})

test('a component that leaves closes the stream', async () => {
  const { app } = mount(Sum)
  const visit = await server.stream()
  app.unmount()
  await visit.gone
  mounted.splice(0)
  url.value = null
})

test('outside of components a scope is enough', async () => {
  const scope = effectScope()
  const { state } = scope.run(() => useConnection(server.url))!
  const visit = await server.stream()
  visit.send(...hello())
  await expect.poll(() => state.value).toBe('connected')
  scope.stop()
  await visit.gone
})

test('a server renders the initial value and opens no connection', async () => {
  const { renderToString } = await import('vue/server-renderer')
  url.value = server.url
  const html = await renderToString(createSSRApp(Sum))
  url.value = null
  expect(html).toContain('connecting 0')
  expect(server.visits()).toBe(0)
})
