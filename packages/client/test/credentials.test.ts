import { afterEach, expect, test, vi } from 'vitest'
import { hello, message, type ScriptedServer, scriptedServer } from './support/scripted-server.ts'
import { clock, deferred, retried, server, start, stateOf, useStage } from './support/stage.ts'

useStage()

let other: ScriptedServer | undefined
afterEach(() => other?.close())

test('a token is asked for before each attempt', async () => {
  let token = 0
  const { stream } = start({ token: () => `t${++token}` })
  const first = await server.visit()
  expect(first.headers.authorization).toBe('Bearer t1')
  first.cut()
  await retried(stream)
  expect((await server.visit()).headers.authorization).toBe('Bearer t2')
})

test('a token that is rejected is refreshed once, at once, and the cursor is kept', async () => {
  const asked: unknown[] = []
  const { stream, events } = start({
    from: 'e1',
    token: async (attempt) => {
      asked.push(attempt.refresh)
      return attempt.refresh ? 'new' : 'old'
    },
  })
  ;(await server.visit()).answer(401)
  const second = await server.stream()
  expect(second.headers).toMatchObject({ authorization: 'Bearer new', 'last-event-id': 'e1' })
  second.send('id: e2', 'data: 2')
  await events.until(1)
  expect(asked).toEqual([false, true])
  expect(stream.state).toMatchObject({ attempt: 0 })
})

test('a token that is rejected twice ends the stream', async () => {
  const { stream } = start({ token: () => 'old' })
  ;(await server.visit()).answer(401)
  ;(await server.visit()).answer(401)
  expect(await stateOf(stream, 'closed')).toMatchObject({ closeReason: 'unauthorized' })
})

test('a token that does not change is not tried twice', async () => {
  const { stream } = start({ token: 'fixed' })
  const first = await server.visit()
  expect(first.headers.authorization).toBe('Bearer fixed')
  first.answer(401)
  await stateOf(stream, 'closed')
  expect(server.visits()).toBe(1)
})

test('a stream whose token expired comes back with another token and the same cursor', async () => {
  const { stream } = start({ from: 'e1', token: ({ refresh }) => (refresh ? 'new' : 'old') })
  ;(await server.stream()).send('retry: 100', 'event: close', 'data: {"reason":"token-expired"}')
  await retried(stream)
  expect((await server.visit()).headers).toMatchObject({ authorization: 'Bearer new', 'last-event-id': 'e1' })
})

test('a token is renewed before it expires, and the stream resumes from its cursor', async () => {
  const { stream, events } = start({ token: ({ refresh }) => (refresh ? 'new' : 'old') })
  const first = await server.stream()
  expect(first.headers.authorization).toBe('Bearer old')
  first.send(...hello({ expiresInMs: 60_000, heartbeatMs: 600_000 }, 'e0'))
  first.send(...message('e1'))
  await events.until(1)
  clock.advance(53_999)
  expect(server.visits()).toBe(1)
  clock.advance(1)
  const second = await server.stream()
  expect(second.headers).toMatchObject({ authorization: 'Bearer new', 'last-event-id': 'e1' })
  await first.gone
  second.send(...hello({ resumed: true, requested: 'e1' }, 'e1'))
  second.send(...message('e2'))
  expect(await events.until(2)).toEqual(['e1', 'e2'])
  expect(stream.state).toMatchObject({ state: 'connected', attempt: 0 })
})

test('a token of a few seconds is renewed when the hub ends the stream, and not in its first five seconds', async () => {
  const asked: boolean[] = []
  const { stream, events } = start({ token: ({ refresh }) => `t${asked.push(refresh)}` })
  const first = await server.stream()
  first.send(...hello({ expiresInMs: 4000, heartbeatMs: 600_000 }, 'e0'))
  first.send(...message('e1'))
  await events.until(1)
  clock.advance(4000)
  expect(asked).toEqual([false])
  first.send('retry: 100', 'event: close', 'data: {"reason":"token-expired"}')
  await retried(stream)
  expect((await server.visit()).headers).toMatchObject({ authorization: 'Bearer t2', 'last-event-id': 'e1' })
  expect(asked).toEqual([false, true])
})

test('a token that takes minutes, as with a login, is asked for once, and then sent', async () => {
  const login = deferred<string>()
  const token = vi.fn(() => login.promise)
  const { stream, events } = start({ token })
  await expect.poll(() => token.mock.calls.length).toBe(1)
  clock.advance(600_000)
  expect(stream.state).toMatchObject({ state: 'connecting', transport: 'fetch' })
  login.resolve('late')
  const visit = await server.stream()
  expect(visit.headers.authorization).toBe('Bearer late')
  visit.send(...message('e1'))
  await events.until(1)
  expect(token).toHaveBeenCalledOnce()
})

test('a token function is told when nobody waits for it any more, and what it then throws is not reported', async () => {
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const told: AbortSignal[] = []
  const { stream } = start({
    token: ({ signal }) =>
      new Promise((_, reject) => {
        told.push(signal)
        signal.addEventListener('abort', () => reject(signal.reason))
      }),
  })
  await expect.poll(() => told.length).toBe(1)
  stream.reconnect()
  await expect.poll(() => told.length).toBe(2)
  expect(told.map(({ aborted }) => aborted)).toEqual([true, false])
  stream.close()
  expect(told.map(({ aborted }) => aborted)).toEqual([true, true])
  await new Promise((resolve) => setImmediate(resolve))
  expect(error).not.toHaveBeenCalled()
})

test('a stream goes on while its token is renewed, and switches when the new one is there', async () => {
  const login = deferred<string>()
  const { events } = start({ token: ({ refresh }) => (refresh ? login.promise : 'old') })
  const first = await server.stream()
  first.send(...hello({ expiresInMs: 60_000, heartbeatMs: 600_000 }, 'e0'))
  first.send(...message('e1'))
  await events.until(1)
  clock.advance(54_000)
  first.send(...message('e2'))
  await events.until(2)
  login.resolve('new')
  const second = await server.stream()
  expect(second.headers).toMatchObject({ authorization: 'Bearer new', 'last-event-id': 'e2' })
  await first.gone
})

test('a token that cannot be renewed yet leaves the stream alone: it is asked for when the hub ends it', async () => {
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const asked: boolean[] = []
  const { stream, events } = start({
    token: ({ refresh }) => {
      asked.push(refresh)
      if (asked.length === 2) throw new Error('no network')
      return `t${asked.length}`
    },
  })
  const first = await server.stream()
  first.send(...hello({ expiresInMs: 60_000, heartbeatMs: 600_000 }, 'e0'))
  first.send(...message('e1'))
  await events.until(1)
  clock.advance(54_000)
  await expect.poll(() => error.mock.calls.length).toBe(1)
  first.send(...message('e2'))
  await events.until(2)
  first.send('retry: 100', 'event: close', 'data: {"reason":"token-expired"}')
  await retried(stream)
  expect((await server.visit()).headers.authorization).toBe('Bearer t3')
  expect(asked).toEqual([false, true, true])
})

test.each([undefined, null, ''])('the token %j is none', async (token) => {
  start({ token })
  expect((await server.visit()).headers.authorization).toBeUndefined()
  start({ token: () => token })
  expect((await server.visit()).headers.authorization).toBeUndefined()
  start({ token: async () => token })
  expect((await server.visit()).headers.authorization).toBeUndefined()
})

test('a token that nobody can renew is used until the hub ends the stream', async () => {
  const { events } = start({ token: 'fixed' })
  const first = await server.stream()
  first.send(...hello({ expiresInMs: 60_000, heartbeatMs: 600_000 }, 'e0'))
  first.send(...message('e1'))
  await events.until(1)
  clock.advance(120_000)
  first.send(...message('e2'))
  await events.until(2)
  expect(server.visits()).toBe(1)
})

test('a token and the user’s headers do not follow a redirect to another server', async () => {
  other = await scriptedServer()
  const { events } = start({ from: 'e1', token: () => 'secret', headers: { 'X-Api-Key': 'secret' } })
  const first = await server.visit()
  expect(first.headers).toMatchObject({ authorization: 'Bearer secret', 'x-api-key': 'secret' })
  first.answer(302, { location: other.url })
  first.end()
  // The request that follows it goes to the first server again, with nothing to hide.
  const again = await server.visit()
  again.answer(302, { location: other.url })
  again.end()
  const moved = await other.stream()
  for (const { headers } of [again, moved]) {
    expect(headers.authorization).toBeUndefined()
    expect(headers['x-api-key']).toBeUndefined()
    expect(headers['last-event-id']).toBe('e1')
  }
  moved.send('id: e2', 'data: 2')
  await events.until(1)
})

test('a status line that is cut in half is no redirect: the next request has the token too', async () => {
  const seen: (string | null)[] = []
  const { stream, events } = start({
    token: 'mine',
    // As Chromium shows an answer of which `HTTP/1.1 20` arrived; no Response can be made with that status.
    async fetch(input, init) {
      seen.push(new Headers(init?.headers).get('authorization'))
      return seen.length > 1 ? fetch(input, init) : ({ status: 20, headers: new Headers(), body: null } as Response)
    },
  })
  await retried(stream)
  ;(await server.stream()).send(...message('e1'))
  expect(await events.until(1)).toEqual(['e1'])
  expect(seen).toEqual(['Bearer mine', 'Bearer mine'])
})

test('a redirect is followed, and the next attempt goes to the first address again', async () => {
  other = await scriptedServer()
  const { stream, events } = start()
  await redirected(2)
  const moved = await other.stream()
  moved.send('id: e1', 'data: 1')
  await events.until(1)
  moved.cut()
  await retried(stream)
  expect((await server.visit()).headers['last-event-id']).toBe('e1')
})

test.each([
  ['token', { token: () => Promise.reject(new Error('no session')) }],
  ['headers', { headers: () => Promise.reject(new Error('no session')) }],
])('a function for %s that fails is the reason that is shown, until it succeeds', async (_, options) => {
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const { stream } = start(options)
  expect(await stateOf(stream, 'backoff')).toMatchObject({ closeReason: 'no-credentials', attempt: 1, opened: false })
  expect(error).toHaveBeenCalledOnce()
  await retried(stream)
  expect(stream.state).toMatchObject({ state: 'connecting', closeReason: null })
  expect(await stateOf(stream, 'backoff')).toMatchObject({ closeReason: 'no-credentials', attempt: 2 })
  expect(server.visits()).toBe(0)
})

test('redirects in a loop are the reason that is shown, and are asked for less and less often, until they lead to a stream', async () => {
  const { stream, events } = start()
  const waits: number[] = []
  for (let attempt = 0; attempt < 4; attempt++) {
    // Node follows 20 redirects.
    await redirected(22, server.url)
    const { nextRetryAt } = await stateOf(stream, 'backoff')
    expect(stream.state).toMatchObject({ closeReason: 'redirect', closeMessage: expect.stringContaining('a loop') })
    waits.push(nextRetryAt! - clock.now())
    clock.advance(nextRetryAt! - clock.now())
  }
  expect(waits).toEqual([3250, 3500, 4000, 5000])
  ;(await server.stream()).send(...message('e1'))
  expect(await events.until(1)).toEqual(['e1'])
})

/** @param location - where to; another server unless it is given */
async function redirected(times: number, location = other!.url): Promise<void> {
  for (let time = 0; time < times; time++) {
    const visit = await server.visit()
    visit.answer(307, { location })
    visit.end()
  }
}
