import { expect, test, vi } from 'vitest'
import { watchUser } from '../../src/bindings/asked-user.ts'
import { keyOf } from '../../src/bindings/shared-streams.ts'
import { createStreamStore, type StoreOptions } from '../../src/bindings/stream-store.ts'
import { holdFrames } from '../support/frames.ts'
import { hello, message } from '../support/scripted-server.ts'
import { clock, deferred, opened, page, server, useStage } from '../support/stage.ts'

useStage()

/** A component that sums up numbers. */
function component(options: StoreOptions = {}, reads = true, source: string | URL = server.url) {
  const initial = 0
  const reduce = (sum: unknown, { data }: { data: unknown }) => Number(sum) + Number(data)
  const given = (next: StoreOptions) => ({ clock, initial, reduce, ...next })
  const store = createStreamStore(source, given(options), reads, watchUser)
  let unmount: (() => void) | undefined
  const mount = () => {
    unmount = store.subscribe(() => undefined)
    opened.push({ close: unmount })
  }
  mount()
  return {
    mount,
    unmount: () => unmount?.(),
    update: (next: StoreOptions) => store.update(given(next)),
    snapshot: () => store.getSnapshot(),
    shows: (value: number) =>
      expect.poll(() => store.getSnapshot(), { interval: 5 }).toMatchObject({ value, state: 'connected' }),
  }
}

const tokenOf = (sub: string, exp: number) => `x.${btoa(JSON.stringify({ iss: 'us', sub, exp }))}.y`

const turn = () => new Promise((resolve) => setTimeout(resolve))

const switches: [what: string, a: StoreOptions, b: StoreOptions][] = [
  ['a token', { token: 'a' }, { token: 'b' }],
  ['a token function', { token: () => 'a' }, { token: () => 'b' }],
  ['headers', { headers: { 'X-Key': 'a' } }, { headers: { 'X-Key': 'b' } }],
  ['a function for headers', { headers: () => ({ 'X-Key': 'a' }) }, { headers: () => ({ 'X-Key': 'b' }) }],
  ['a cookie', {}, {}],
  ['a cookie and a header that is always the same', { headers: { 'X-App': '1' } }, { headers: { 'X-App': '1' } }],
  ['a function for fetch', { fetch: (...given) => fetch(...given) }, { fetch: (...given) => fetch(...given) }],
  ['a token and a function for fetch', { token: 'app', fetch: (...given) => fetch(...given) }, { token: 'app' }],
  ['a token and a function for headers', { token: 'a', headers: () => ({}) }, { token: 'b', headers: () => ({}) }],
  ['an identity', { identity: 'a' }, { identity: 'b' }],
]

test.each(switches.flatMap(([what, a, b]) => [true, false].map((atOnce) => [what, atOnce, a, b] as const)))(
  'after an account switch with %s, which comes at once: %s, the next user gets nothing of the first',
  async (_, atOnce, a, b) => {
    const first = component(a)
    const status = component({}, false)
    const visit = await server.stream()
    visit.send(...message('e1', 1))
    await first.shows(1)
    await status.shows(0)
    first.unmount()
    // A status opens a stream when nothing else does.
    const alone = atOnce ? visit : await server.stream()
    const second = component(b)
    const next = await server.stream()
    for (const { gone } of [visit, alone]) await gone
    expect(next.headers['last-event-id']).toBeUndefined()
    next.send(...message('e7', 7))
    await second.shows(7)
    await status.shows(0)
  },
)

test('a token or a header with another text is another user, whatever functions are given beside it', () => {
  const keys = (both: StoreOptions, a: StoreOptions, b: StoreOptions) =>
    [a, b].map((one) => keyOf('/events', { ...both, ...one }))
  const cases = [
    keys({ headers: () => ({}) }, { token: 'a' }, { token: 'b' }),
    keys({ token: () => 'any' }, { headers: { 'X-Key': 'a' } }, { headers: { 'X-Key': 'b' } }),
    keys({ fetch }, { token: 'a' }, { token: 'b' }),
  ]
  for (const [a, b] of cases) expect(a).not.toBe(b)
})

test('components that are there at the same time share a stream, each with a function of its own', async () => {
  const components = Array.from({ length: 10 }, () => component({ token: () => 'a' }))
  const visit = await server.stream()
  components.push(component({ token: () => 'a' }))
  visit.send(...message('e1', 1))
  for (const { shows } of components) await shows(1)
  expect(server.visits()).toBe(1)
})

test('a token of the same subject goes on with the same stream', async () => {
  expect(keyOf('/events', { token: tokenOf('ada', 1) })).toBe(keyOf('/events', { token: tokenOf('ada', 2) }))
  expect(keyOf('/events', { token: tokenOf('ada', 1) })).not.toBe(keyOf('/events', { token: tokenOf('ben', 1) }))
  const { update, shows } = component({ token: tokenOf('ada', 1) })
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await shows(1)
  update({ token: tokenOf('ada', 2) })
  const next = await server.stream()
  expect(next.headers).toMatchObject({ authorization: `Bearer ${tokenOf('ada', 2)}`, 'last-event-id': 'e1' })
})

test('two components of one user with different tokens do not replace each other for ever', async () => {
  const options = [
    { identity: 'ada', token: 'old' },
    { identity: 'ada', token: 'new' },
  ]
  const both = options.map((given) => component(given))
  const visit = await server.stream()
  visit.send(...hello())
  for (const [index, { shows, update }] of both.entries()) {
    await shows(0)
    update({ ...options[index]! })
  }
  for (let rendering = 0; rendering < 5; rendering++) {
    for (const [index, { update }] of both.entries()) update({ ...options[index]! })
    await turn()
  }
  visit.send(...message('e1', 1))
  for (const { shows } of both) await shows(1)
  expect(server.visits()).toBe(1)
})

test('a component without credentials reads with those of the others, and starts anew when they leave', async () => {
  const owner = component({ token: 'a' })
  const guest = component()
  const visit = await server.stream()
  expect(visit.headers.authorization).toBe('Bearer a')
  visit.send(...message('e1', 1))
  await guest.shows(1)
  owner.unmount()
  const next = await server.stream()
  expect(next.headers.authorization).toBeUndefined()
  expect(next.headers['last-event-id']).toBeUndefined()
  await visit.gone
  await guest.shows(0)
})

test.each<[string, StoreOptions, StoreOptions]>([
  ['a token', { token: 'a' }, { token: 'b' }],
  ['a token function', { token: () => 'a' }, { token: () => 'b' }],
  ['a function for headers', { headers: () => ({ 'X-Key': 'a' }) }, { headers: () => ({ 'X-Key': 'b' }) }],
  ['an identity', { identity: 'a' }, { identity: 'b' }],
])(
  'a component without credentials that stays when the user changes, by %s, shows nothing of the first user',
  async (_, a, b) => {
    const guest = component()
    const first = component(a)
    const visit = await server.stream()
    visit.send(...message('e1', 1))
    await guest.shows(1)
    first.unmount()
    const second = component(b)
    const next = await server.stream()
    await visit.gone
    expect(next.headers['last-event-id']).toBeUndefined()
    next.send(...message('e7', 7))
    for (const { shows } of [guest, second]) await shows(7)
  },
)

test.each<[string, (user: string) => StoreOptions]>([
  ['a token function', (user) => ({ token: () => user })],
  ['a function for headers', (user) => ({ headers: () => ({ Authorization: `Bearer ${user}` }) })],
  ['a cookie', () => ({})],
])(
  'when one page fades out while another fades in, with %s, the other goes on at its cursor with credentials of its own',
  async (what, optionsOf) => {
    const first = component(optionsOf('a'))
    const visit = await server.stream()
    visit.send(...message('e1', 1))
    await first.shows(1)
    const second = component(optionsOf('b'))
    visit.send(...message('e2', 2))
    await second.shows(2)
    first.unmount()
    const next = await server.stream()
    await visit.gone
    expect(next.headers['last-event-id']).toBe('e2')
    if (what !== 'a cookie') expect(next.headers.authorization).toBe('Bearer b')
    next.send(...message('e3', 3))
    await second.shows(5)
    expect(server.visits()).toBe(2)
  },
)

/** Without an identity, the components of two users who are there at the same time share. */
async function overlap(a: StoreOptions, b: StoreOptions) {
  const first = component(a)
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await first.shows(1)
  const second = component(b)
  const list = component({ ...b, reduce: undefined })
  visit.send(...message('e2', 2))
  await second.shows(2)
  return { first, second, list, visit }
}

test.each<[string, number, StoreOptions, StoreOptions]>([
  ['a cookie', 403, {}, {}],
  ['a cookie', 401, {}, {}],
  ['a token function', 403, { token: () => 'a' }, { token: () => 'b' }],
  ['a function for headers', 404, { headers: () => ({ 'X-Key': 'a' }) }, { headers: () => ({ 'X-Key': 'b' }) }],
])(
  'when pages of two users overlap, with %s, and the second user is rejected with %i, nothing of the first stays',
  async (_, status, a, b) => {
    const { first, second, list, visit } = await overlap(a, b)
    first.unmount()
    const rejected = await server.visit()
    await visit.gone
    expect(rejected.headers['last-event-id']).toBe('e2')
    rejected.answer(status)
    rejected.end()
    const anew = await server.visit()
    expect(anew.headers['last-event-id']).toBeUndefined()
    expect(second.snapshot()).toMatchObject({ value: 0 })
    expect(list.snapshot()).toMatchObject({ events: [] })
    anew.answer(status)
    anew.end()
    await expect.poll(() => second.snapshot()).toMatchObject({ value: 0, state: 'closed' })
    expect(list.snapshot()).toMatchObject({ events: [] })
    expect(server.visits()).toBe(3)
  },
)

test('a stored cursor outlasts a rejection, as of a session that has expired while one page replaced another', async () => {
  const persist = { load: () => 'e0', save: (cursor: string | null) => saved.push(cursor) }
  const saved: unknown[] = []
  const { first, second, visit } = await overlap({ persist }, { persist })
  first.unmount()
  const rejected = await server.visit()
  await visit.gone
  rejected.answer(401)
  rejected.end()
  expect((await server.visit()).headers['last-event-id']).toBe('e0')
  expect(second.snapshot()).toMatchObject({ value: 0 })
  expect(saved).not.toContain(null)
})

test('a user who is rejected on a connection that was made while the page before was there keeps nothing either', async () => {
  const { first, second } = await overlap({}, {})
  second.snapshot().reconnect()
  const rejected = await server.visit()
  first.unmount()
  await rejected.gone
  const again = await server.visit()
  expect(again.headers['last-event-id']).toBe('e2')
  again.answer(403)
  again.end()
  expect((await server.visit()).headers['last-event-id']).toBeUndefined()
  expect(second.snapshot()).toMatchObject({ value: 0 })
})

test('a component that is rejected on its own connection goes on where it was when it may read again', async () => {
  const reader = component()
  const visit = await server.stream()
  const later = component()
  visit.send(...message('e1', 1))
  for (const { shows } of [reader, later]) await shows(1)
  reader.snapshot().reconnect()
  const rejected = await server.visit()
  rejected.answer(401)
  rejected.end()
  await expect.poll(() => reader.snapshot()).toMatchObject({ state: 'closed', value: 1 })
  expect(later.snapshot()).toMatchObject({ value: 1 })
  reader.snapshot().reconnect()
  const next = await server.stream()
  expect(next.headers['last-event-id']).toBe('e1')
  next.send(...message('e2', 2))
  for (const { shows } of [reader, later]) await shows(3)
})

test.each<[string, (token: () => string) => StoreOptions]>([
  ['a token function', (token) => ({ token })],
  ['a token function that is async', (token) => ({ token: async () => token() })],
  ['a function for headers', (token) => ({ headers: () => ({ Authorization: `Bearer ${token()}` }) })],
])(
  '%s that gives the JWT of another user starts anew, and goes on with a fresh one of the same user',
  async (_, by) => {
    let token = tokenOf('ada', 1)
    const reader = component(by(() => token))
    const list = component({ ...by(() => token), reduce: undefined })
    const visit = await server.stream()
    visit.send(...message('e1', 1))
    await reader.shows(1)
    token = tokenOf('ada', 2)
    reader.snapshot().reconnect()
    const fresh = await server.stream()
    expect(fresh.headers).toMatchObject({ authorization: `Bearer ${token}`, 'last-event-id': 'e1' })
    fresh.send(...message('e2', 2))
    await reader.shows(3)
    token = tokenOf('ben', 3)
    reader.snapshot().reconnect()
    const other = await server.stream()
    expect(other.headers.authorization).toBe(`Bearer ${token}`)
    expect(other.headers['last-event-id']).toBeUndefined()
    expect(list.snapshot()).toMatchObject({ events: [] })
    other.send(...message('e7', 7))
    await reader.shows(7)
    expect(server.visits()).toBe(3)
  },
)

test('a token function that gives the JWT of another user while the connection is open closes that at once', async () => {
  let token = tokenOf('ada', 1)
  const reader = component({ token: () => token })
  const visit = await server.stream()
  visit.send(...hello({ expiresInMs: 1000 }))
  visit.send(...message('e1', 1))
  await reader.shows(1)
  token = tokenOf('ben', 1)
  clock.advance(5000)
  const other = await server.stream()
  await visit.gone
  expect(other.headers['last-event-id']).toBeUndefined()
  other.send(...message('e7', 7))
  await reader.shows(7)
})

test('when pages of two users overlap whose functions give JWTs, the second user begins anew, even if both may read', async () => {
  const { first, second, visit } = await overlap({ token: () => tokenOf('ada', 1) }, { token: () => tokenOf('ben', 1) })
  first.unmount()
  const next = await server.stream()
  await visit.gone
  expect(next.headers).toMatchObject({ authorization: `Bearer ${tokenOf('ben', 1)}` })
  expect(next.headers['last-event-id']).toBeUndefined()
  next.send(...message('e7', 7))
  await second.shows(7)
  expect(server.visits()).toBe(2)
})

test('a component that returns to the stream of another user, known by a JWT, begins anew', async () => {
  let token = tokenOf('ada', 1)
  const returns = component({ token: () => token })
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await returns.shows(1)
  returns.unmount()
  await visit.gone
  token = tokenOf('ben', 1)
  const stays = component({ token: () => token })
  const next = await server.stream()
  next.send(...message('e2', 2))
  await stays.shows(2)
  returns.mount()
  next.send(...message('e3', 3))
  await stays.shows(5)
  await expect.poll(() => returns.snapshot().value).toBeLessThan(6)
  expect(server.visits()).toBe(2)
})

test('an identity says who reads, whatever a token function gives', async () => {
  let token = tokenOf('ada', 1)
  const reader = component({ identity: 'ada', token: () => token })
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await reader.shows(1)
  token = tokenOf('session-2', 1)
  reader.snapshot().reconnect()
  const next = await server.stream()
  expect(next.headers['last-event-id']).toBe('e1')
  next.send(...message('e2', 2))
  await reader.shows(3)
})

test('when a token function gives the JWT of another user, the stored cursor of the first is not used', async () => {
  const stored = new Map<string, string>()
  const getItem = (key: string) => stored.get(key) ?? null
  vi.stubGlobal('sessionStorage', { getItem, setItem: (key: string, value: string) => stored.set(key, value) })
  let token = tokenOf('ada', 1)
  const reader = component({ token: () => token, persist: 'session' })
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await reader.shows(1)
  await expect.poll(() => [...stored.values()]).toEqual(['e1'])
  token = tokenOf('ben', 1)
  reader.snapshot().reconnect()
  const other = await server.stream()
  expect(other.headers['last-event-id']).toBeUndefined()
  other.send(...message('e7', 7))
  await reader.shows(7)
  await expect.poll(() => [...stored.values()]).toEqual(['e7'])
})

test('a token function that fails for a while, or gives tokens that are no JWTs, loses nothing', async () => {
  const reported = vi.fn()
  vi.stubGlobal('reportError', reported)
  const tokens = [() => 'one', () => Promise.reject(new Error('offline')), () => 'two', () => tokenOf('ada', 1)]
  const reader = component({ token: () => tokens.shift()!() })
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await reader.shows(1)
  reader.snapshot().reconnect()
  await expect.poll(() => reader.snapshot()).toMatchObject({ closeReason: 'no-credentials', value: 1 })
  reader.snapshot().reconnect()
  const next = await server.stream()
  expect(next.headers).toMatchObject({ authorization: 'Bearer two', 'last-event-id': 'e1' })
  await reader.shows(1)
  reader.snapshot().reconnect()
  const last = await server.stream()
  expect(last.headers).toMatchObject({ authorization: `Bearer ${tokenOf('ada', 1)}`, 'last-event-id': 'e1' })
  expect(reported).toHaveBeenCalledOnce()
})

test('when the component stays that opened the connection, others come and go on it', async () => {
  const stays = component()
  const visit = await server.stream()
  for (let index = 1; index <= 5; index++) {
    const guest = component()
    visit.send(...message(`e${index}`, 1))
    await guest.shows(1)
    guest.unmount()
    await stays.shows(index)
  }
  expect(server.visits()).toBe(1)
})

test('of sixty rows that scroll by, all without an identity, each gets what is published while it is there', async () => {
  const rows = Array.from({ length: 60 }, () => component({ keep: 0 }))
  for (const { unmount } of rows) unmount()
  await turn()
  expect(server.visits()).toBe(0)
  for (const [index, row] of rows.entries()) {
    row.mount()
    await turn()
    rows[index - 2]?.unmount()
  }
  await turn()
  expect(server.visits()).toBeLessThanOrEqual(4)
})

test('a component that gets no function for credentials any more has signed out', () => {
  const none = keyOf('/events', {})
  for (const options of [{ token: () => 'a' }, { headers: () => ({}) }, { fetch }, { token: 'a' }, { identity: 'a' }])
    expect(keyOf('/events', options)).not.toBe(none)
})

test('one URL that is written in several ways is one stream', async () => {
  page()
  const { origin, pathname } = new URL(server.url)
  const sources = [server.url, pathname, new URL(server.url), `${origin}/x/..${pathname}`]
  const all = sources.map((source) => component({}, true, source))
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  for (const { shows } of all) await shows(1)
  expect(server.visits()).toBe(1)
  for (const { unmount } of all) unmount()
  await visit.gone
})

test('a component that shows the values of the last user does not wait for a frame to forget them', async () => {
  const guest = component()
  const first = component({ token: 'a' })
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await guest.shows(1)
  holdFrames()
  first.unmount()
  await server.stream()
  expect(guest.snapshot()).toMatchObject({ value: 0 })
})

test('users with tokens of their own, as JWTs, keep a cursor each in the storage of the tab', async () => {
  const stored = new Map<string, string>()
  const getItem = (key: string) => stored.get(key) ?? null
  vi.stubGlobal('sessionStorage', { getItem, setItem: (key: string, value: string) => stored.set(key, value) })
  const read = async (sub: string, id: string, expected: string | undefined) => {
    const reader = component({ token: tokenOf(sub, Math.random()), persist: 'session' })
    const visit = await server.stream()
    expect(visit.headers['last-event-id']).toBe(expected)
    visit.send(...message(id, 1))
    await reader.shows(1)
    await expect.poll(() => [...stored.values()]).toContain(id)
    reader.unmount()
    await visit.gone
  }
  await read('ada', 'e1', undefined)
  await read('ben', 'e2', undefined)
  await read('ada', 'e3', 'e1')
  await read('ben', 'e4', 'e2')
})

test('thirty components that return with different cursors take one connection beside the open one', async () => {
  const stays = component({ keep: 0 })
  const returning = Array.from({ length: 30 }, () => component({ keep: 0 }))
  const visit = await server.stream()
  for (const [index, it] of returning.entries()) {
    visit.send(...message(`e${index}`, 1))
    await it.shows(index + 1)
    it.unmount()
  }
  await stays.shows(30)
  visit.send(...message('e30', 1))
  await stays.shows(31)
  for (const it of returning) it.mount()
  const second = await server.stream()
  expect(second.headers['last-event-id']).toBe('e0')
  for (let index = 1; index <= 30; index++) second.send(...message(`e${index}`, 1))
  for (const { shows } of returning) await shows(31)
  await second.gone
  visit.send(...message('e31', 1))
  for (const { shows } of [stays, ...returning]) await shows(32)
  expect(server.visits()).toBe(2)
})

test('while a component catches up, events that come live are given to it once and in order', async () => {
  const stays = component({ keep: 0 })
  const seen: unknown[] = []
  const returns = component({ keep: 0, onEvent: ({ id }) => seen.push(id) })
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await returns.shows(1)
  returns.unmount()
  await turn()
  visit.send(...message('e2', 1))
  await stays.shows(2)
  returns.mount()
  const second = await server.stream()
  visit.send(...message('e3', 1))
  await stays.shows(3)
  second.send(...message('e2', 1))
  await returns.shows(2)
  second.send(...message('e3', 1))
  await second.gone
  visit.send(...message('e4', 1))
  await returns.shows(4)
  expect(seen).toEqual(['e1', 'e2', 'e3', 'e4'])
})

test('when the stream that went on is not read any more, the returning component goes on alone', async () => {
  const stays = component({ keep: 0 })
  const returns = component({ keep: 0 })
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await returns.shows(1)
  returns.unmount()
  await turn()
  visit.send(...message('e2', 1))
  await stays.shows(2)
  returns.mount()
  const second = await server.stream()
  stays.unmount()
  await visit.gone
  await second.gone
  const third = await server.stream()
  expect(third.headers['last-event-id']).toBe('e1')
  third.send(...message('e2', 1))
  await returns.shows(2)
})

test('a status that is attached again joins the open stream', async () => {
  const reader = component()
  const status = component({}, false)
  const visit = await server.stream()
  for (const number of [1, 2, 3]) {
    visit.send(...message(`e${number}`, 1))
    await reader.shows(number)
    status.unmount()
    await turn()
    status.mount()
    await status.shows(0)
  }
  expect(server.visits()).toBe(1)
})

test('of sixty URLs that follow each other, only a few are opened, and the last one', async () => {
  let leave: (() => void) | undefined
  for (let index = 0; index < 60; index++) {
    leave?.()
    leave = createStreamStore(`${server.url}?q=${index}`, {}, true).subscribe(() => undefined)
    await turn()
  }
  opened.push({ close: leave! })
  for (;;) {
    const visit = await server.visit()
    if (visit.url.searchParams.get('q') === '59') break
  }
  expect(server.visits()).toBeLessThanOrEqual(4)
})

test('the stored cursor moves once onEvent has run and its promise has settled, also without frames', async () => {
  holdFrames()
  const saved: unknown[] = []
  const handled: unknown[] = []
  const done = deferred()
  component({
    persist: { load: () => null, save: (cursor) => void saved.push(cursor) },
    onEvent({ id }) {
      handled.push(id)
      if (id === 'e2') return done.promise
    },
  })
  const visit = await server.stream()
  visit.send(...hello({}, 'e0'))
  visit.send(...message('e1', 1))
  await expect.poll(() => saved.at(-1)).toBe('e1')
  expect(handled).toEqual(['e1'])
  for (const id of ['e2', 'e3']) visit.send(...message(id, 1))
  await expect.poll(() => handled).toEqual(['e1', 'e2', 'e3'])
  await turn()
  expect(saved.at(-1)).toBe('e1')
  done.resolve()
  await expect.poll(() => saved.at(-1)).toBe('e3')
})

test('a component that returns to a stored cursor which others have moved on misses nothing', async () => {
  let stored: string | null = null
  const persist = { load: () => stored, save }
  function save(cursor: string | null): void {
    stored = cursor
  }
  const stays = component({ persist, keep: 0 })
  const returns = component({ persist, keep: 0 })
  const visit = await server.stream()
  visit.send(...message('e1', 1))
  await returns.shows(1)
  returns.unmount()
  await turn()
  visit.send(...message('e2', 1))
  await stays.shows(2)
  await expect.poll(() => stored).toBe('e2')
  stays.unmount()
  await visit.gone
  returns.mount()
  const main = await server.stream()
  expect(main.headers['last-event-id']).toBe('e2')
  main.send(...hello({ requested: 'e2', resumed: true }, 'e2'))
  const second = await server.stream()
  expect(second.headers['last-event-id']).toBe('e1')
  second.send(...message('e2', 1))
  await returns.shows(2)
  await second.gone
  main.send(...message('e3', 1))
  await returns.shows(3)
})

test('a component that is unmounted by its own handler, in the midst of a chunk, gets the rest when it returns', async () => {
  const seen: unknown[] = []
  const stays = component({ identity: 'ada', keep: 0 })
  const leaves = component({
    identity: 'ada',
    keep: 0,
    onEvent({ id }) {
      seen.push(id)
      if (id === 'e2') leaves.unmount()
    },
  })
  const visit = await server.stream()
  visit.write([1, 2, 3, 4].map((number) => `${message(`e${number}`, 1).join('\n')}\n\n`).join(''))
  await stays.shows(4)
  expect(seen).toEqual(['e1', 'e2'])
  leaves.mount()
  const second = await server.stream()
  expect(second.headers['last-event-id']).toBe('e2')
  for (const number of [3, 4]) second.send(...message(`e${number}`, 1))
  await leaves.shows(4)
  expect(seen).toEqual(['e1', 'e2', 'e3', 'e4'])
})
