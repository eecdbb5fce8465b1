import { createHash } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { fakeProcess } from '../support/fake-process.ts'
import { open, send, until } from '../support/http.ts'

const key = 'key_4NtRb8Wq2Zc7LmVx9Hd3Jf6Ks1Pg5YaU'
const publisherKey = 'key_9QwErTy3UiOp7AsDf1GhJk5LzXcVbNmQ'
const publisher = {
  name: 'writer',
  sha256: createHash('sha256').update(publisherKey).digest('hex'),
  publish: ['orders/*'],
}
const keys = [
  { name: 'app', sha256: createHash('sha256').update(key).digest('hex'), subscribe: ['orders/*'] },
  publisher,
]
const withKey = { authorization: `Bearer ${key}` }

test('every reader that is rejected leaves a line with the status it got, the reason and the channels it asked for', async () => {
  const { url, lines } = await started({ REJOIN_ACCESS_KEYS: JSON.stringify(keys) })
  const userAgent = { 'user-agent': 'a-reader' }
  await send(url, '/events/orders/1', { headers: userAgent })
  await send(url, '/poll/orders/1', { headers: { ...userAgent, authorization: 'Bearer wrong' } })
  await send(url, '/events/orders/1?channel=secrets', { headers: { ...userAgent, ...withKey } })
  await send(url, '/stream/a%0Ab', { headers: { ...userAgent, ...withKey } })
  await send(url, '/events/orders/1', { headers: { ...userAgent, origin: 'http://evil.example' } })
  const known = { level: 'warn', event: 'sse_reject', client_ip: '127.0.0.1', user_agent: 'a-reader' }
  expect(lines('sse_reject')).toMatchObject([
    { ...known, status: 401, reason: 'unauthorized', channels: ['orders/1'] },
    { ...known, status: 401, reason: 'unauthorized', channels: ['orders/1'] },
    { ...known, status: 403, reason: 'forbidden', channels: ['orders/1', 'secrets'] },
    { ...known, status: 400, reason: 'invalid-channel', channels: ['a\ufffdb'] },
    { ...known, status: 403, reason: 'origin', origin: 'http://evil.example', channels: ['orders/1'] },
  ])
})

test('a publisher, a page or a ticket that is rejected leaves a line and is counted by why; a bad event is its sender’s affair', async () => {
  const admin = { authorization: 'Bearer a-token-for-the-admin-of-this-test' }
  const { url, lines } = await started({
    REJOIN_ACCESS_KEYS: JSON.stringify(keys),
    REJOIN_ADMIN_TOKEN: 'a-token-for-the-admin-of-this-test',
  })
  const evil = { origin: 'http://evil.example' }
  const post = (path: string, headers: Record<string, string>, body = '') =>
    send(url, path, { method: 'POST', headers, body })
  await post('/publish/orders/1', {}, 'x')
  await post('/publish/orders/1', withKey, 'x')
  await post('/publish', { authorization: `Bearer ${publisherKey}` }, '{"channel":"secrets","data":1}')
  await post('/publish', { authorization: `Bearer ${publisherKey}` }, 'not JSON')
  await post('/end/orders/1', withKey)
  await send(url, '/channels/orders/1', { method: 'DELETE', headers: withKey })
  await post('/ticket', {})
  await post('/publish/orders/1', evil, 'x')
  await send(url, '/events/orders/1', {
    method: 'OPTIONS',
    headers: { ...evil, 'access-control-request-method': 'GET', 'access-control-request-headers': 'last-event-id' },
  })
  await send(url, '/nowhere')
  expect(lines('request_reject').map(({ action, status, reason }) => `${action} ${status} ${reason}`)).toEqual([
    'publish 401 unauthorized',
    'publish 403 forbidden',
    'publish 403 forbidden',
    'end 403 forbidden',
    'delete 403 forbidden',
    'ticket 401 unauthorized',
    'publish 403 origin',
    'preflight 403 origin',
  ])
  // A publisher that names its channel in the body is logged with it, too.
  expect(lines('request_reject')[2]).toMatchObject({ action: 'publish', channels: ['secrets'] })
  expect(lines('request_reject').at(-1)).toMatchObject({ ...evil, level: 'warn', client_ip: '127.0.0.1' })
  const { text } = await send(url, '/metrics', { headers: admin })
  const counts = Object.fromEntries(
    [...text.matchAll(/rejoin_rejects_total\{kind="([^"]+)"\} ([1-9]\d*)/g)].map(([, kind, count]) => [
      kind,
      Number(count),
    ]),
  )
  expect(counts).toEqual({ unauthorized: 1, forbidden: 4, ticket: 1, origin: 1, preflight: 1 })
})

test('a reader that a limit, maintenance or a draining hub rejects leaves a line, by stream, by status and by poll', async () => {
  const admin = { authorization: 'Bearer a-token-for-the-admin-of-this-test' }
  const { url, lines } = await started({
    REJOIN_LIMITS_MAX_CONNECTIONS: '1',
    REJOIN_ADMIN_TOKEN: 'a-token-for-the-admin-of-this-test',
  })
  const reader = await open(url, '/events/a')
  await until(reader, 'event: hello')
  const paths = ['/events/a', '/events/a?reject=status', '/poll/a']
  const askAll = async () => {
    for (const path of paths) await send(url, path)
  }
  const act = (what: string, body: unknown) =>
    send(url, `/admin/${what}`, { method: 'POST', headers: admin, body: JSON.stringify(body) })
  await askAll()
  await act('maintenance', { on: true, retryAfterMs: 1000 })
  await askAll()
  await act('maintenance', { on: false })
  await act('drain', { withinMs: 1 })
  await askAll()
  const told = lines('sse_reject').map(({ status, reason }) => `${status} ${reason}`)
  const ofAll = (reason: string) => [`200 ${reason}`, `503 ${reason}`, `503 ${reason}`]
  expect(told).toEqual([...ofAll('connections'), ...ofAll('maintenance'), ...ofAll('drain')])
})

test('a flood of rejected readers is a hundred lines and a count, and hides none of the lines about other readers', async () => {
  const { url, lines, stop } = await started({ REJOIN_ACCESS_KEYS: JSON.stringify(keys) })
  for (let round = 0; round < 12; round += 1) {
    await Promise.all(Array.from({ length: 10 }, () => send(url, '/events/orders/1')))
  }
  const reader = await open(url, '/events/orders/1', { headers: withKey })
  await until(reader, 'event: hello')
  expect(lines('sse_reject')).toHaveLength(100)
  expect(lines('sse_connect')).toHaveLength(1)
  await stop()
  expect(lines('sse_more')).toContainEqual(expect.objectContaining({ sse_reject: 20 }))
})

test('a flood of reports of clients hides none of the lines about readers', async () => {
  const { url, lines, stop } = await started({})
  const report = { event: 'sse_reconnect', attempt: 1, delay_ms: 1, url: 'http://a/events/a', timestamp: 'now' }
  const flood = { method: 'POST', body: JSON.stringify(Array<object>(100).fill(report)) }
  for (let round = 0; round < 3; round += 1) expect((await send(url, '/log', flood)).status).toBe(204)
  const reader = await open(url, '/events/orders/1')
  await until(reader, 'event: hello')
  expect(lines('sse_connect')).toHaveLength(1)
  expect(lines('sse_reconnect')).toHaveLength(100)
  await stop()
  expect(lines('sse_more')).toContainEqual(expect.objectContaining({ sse_reconnect: 200 }))
})

test('a failed resume is a replay that was not found, with its reason', async () => {
  const { url, lines } = await started({})
  const reader = await open(url, '/events/a', { headers: { 'last-event-id': 'nonsense' } })
  await until(reader, 'event: sync-required')
  const known = { event: 'sse_replay', level: 'warn', requested_id: 'nonsense', channels: ['a'] }
  expect(lines('sse_replay')).toMatchObject([
    { ...known, channel: 'a', found_in_window: false, caught_up: false, replayed_count: 0, reason: 'unknown-id' },
  ])
  expect(lines('sse_gap')).toEqual([])
})

test('a reader that is told of a gap in the middle of its stream is no failed resume', async () => {
  const admin = { authorization: 'Bearer a-token-for-the-admin-of-this-test' }
  const { url, lines } = await started({ REJOIN_ADMIN_TOKEN: 'a-token-for-the-admin-of-this-test' })
  const reader = await open(url, '/events/a')
  await until(reader, 'event: hello')
  await send(url, '/admin/invalidate', { method: 'POST', headers: admin, body: '{"channel":"a"}' })
  await until(reader, 'event: sync-required')
  expect(lines('sse_gap')).toMatchObject([{ level: 'warn', reason: 'forced' }])
  expect(lines('sse_replay')).toEqual([])
})

/** The program as it is started from a shell, but for the process it would end. */
async function started(env: Record<string, string>) {
  const { host, output, emit } = fakeProcess({ env })
  await runProgram(['serve', '--port', '0', '--log', 'memory'], host)
  onTestFinished(() => emit('SIGTERM'))
  const { url } = JSON.parse(output[0] ?? '') as { url: string }
  const lines = (event: string) =>
    output
      .join('')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter((line) => line.event === event)
  const stop = async () => {
    emit('SIGTERM')
    await expect.poll(() => lines('server_stopping')).toHaveLength(1)
  }
  return { url, lines, stop }
}
