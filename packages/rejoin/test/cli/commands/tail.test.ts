import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { type FakeProcessOptions, fakeProcess, run } from '../../support/fake-process.ts'
import { nobody, serving } from '../../support/http.ts'

test('events are printed as they come, with their ids and types', async () => {
  const { url, hub } = await serving()
  const tail = start(['tail', 'demo', '--url', url])
  await tail.says(`rejoin: connected to ${url}, demo\n`)
  const { id } = await hub.publish('demo', { type: 'said', data: { n: 1 } })
  await tail.prints(`${id}  said  {"n":1}\n`)
})

test('patterns and several channels say which one an event is from', async () => {
  const { url, hub } = await serving()
  const tail = start(['tail', 'orders/*', 'news', '--url', url, '--quiet'])
  await expect.poll(() => hub.readers('news')).toBe(1)
  await hub.publish('orders/42', { text: 'shipped' })
  await hub.publish('news', { text: 'rain' })
  await tail.prints(/^\S+ {2}orders\/42 {2}message {2}shipped\n\S+ {2}news {2}message {2}rain\n$/)
  expect(tail.stderr()).toBe('')
})

describe('as JSON', () => {
  test('data keeps its own text, and what was published as text is text, whatever it looks like', async () => {
    const { url, hub } = await serving()
    const body = '{"n": 12345678901234567890,\n"m": 2}'
    const headers = { 'Content-Type': 'application/json' }
    const one = (await (await fetch(`${url}/publish/demo`, { method: 'POST', body, headers })).json()) as { id: string }
    const two = await hub.publish('demo', { text: 'a "b"\n\u009bc' })
    const three = await hub.publish('demo', { text: '42' })
    const { stdout } = await run(['tail', 'demo', '--since', 'earliest', '--json', '--count', '3', '--url', url])
    expect(stdout).toBe(
      `{"id":"${one.id}","channel":"demo","type":"message","data":{"n": 12345678901234567890, "m": 2}}\n` +
        `{"id":"${two.id}","channel":"demo","type":"message","text":"a \\"b\\"\\n\\u009bc"}\n` +
        `{"id":"${three.id}","channel":"demo","type":"message","text":"42"}\n`,
    )
  })

  test('a gap is a line among the events', async () => {
    const { url, hub } = await serving()
    const { id } = await hub.publish('demo', { data: 1 })
    await hub.invalidate('demo')
    const tail = start(['tail', 'demo', '--since', id, '--json', '--url', url])
    await tail.prints(/^\{"type":"sync-required","reason":"forced","channels":\["demo"\]/)
  })
})

describe('tail begins', () => {
  test('after an id, with the last so many, or with the oldest that is held', async () => {
    const { url, hub } = await serving()
    const ids: string[] = []
    for (const data of [1, 2, 3]) ids.push((await hub.publish('demo', { data })).id)
    const printed = async (...flags: string[]) => {
      const { stdout } = await run(['tail', 'demo', '--json', '--url', url, ...flags])
      return stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line).data)
    }
    expect(await printed('--since', ids[0] as string, '--count', '2')).toEqual([2, 3])
    expect(await printed('--last', '1', '--count', '1')).toEqual([3])
    expect(await printed('--since', 'earliest', '--count', '3')).toEqual([1, 2, 3])
  })

  test('with words about a gap when events after the id are gone', async () => {
    const { url, hub } = await serving()
    const { id } = await hub.publish('demo', { data: 1 })
    await hub.invalidate('demo')
    const tail = start(['tail', 'demo', '--since', id, '--url', url])
    await tail.says(/rejoin: events of demo are gone \(forced\)\. What follows is whole from \S+ on\.\n/)
  })
})

test('only the types that were asked for are printed', async () => {
  const { url, hub } = await serving()
  for (const type of ['a', 'b', 'c']) await hub.publish('demo', { type, data: 1 })
  const { stdout } = await run([
    'tail',
    '--type',
    'a',
    '--type',
    'c',
    'demo',
    '--last',
    '9',
    '--count',
    '2',
    '--json',
    '--url',
    url,
  ])
  expect([...stdout.matchAll(/"type":"(.)"/g)].map(([, type]) => type)).toEqual(['a', 'c'])
})

test('control characters in an event are shown and not obeyed', async () => {
  const { url, hub } = await serving()
  await hub.publish('demo', { type: 'a\u202eb', text: '\u001b[2Jgone\nnext \u009b1m' })
  const { stdout } = await run(['tail', 'demo', '--last', '1', '--count', '1', '--url', url])
  expect(stdout.slice(26)).toBe('  a\ufffdb  \ufffd[2Jgone\n  next \ufffd1m\n')
})

describe('tail ends', () => {
  test('when a channel has ended and all of it is printed', async () => {
    const { url, hub } = await serving()
    await hub.publish('answer', { text: 'whole' })
    await hub.end('answer')
    const { stdout, exitCode } = await run(['tail', 'answer', '--last', '9', '--url', url])
    expect([stdout, exitCode]).toEqual([expect.stringContaining('whole'), 0])
  })

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ])('on %s, with what a shell expects', async (signal, code) => {
    const { url } = await serving()
    const tail = start(['tail', 'demo', '--url', url])
    await tail.says('connected')
    tail.emit(signal)
    expect(await tail.ended).toBe(code)
  })

  test('when the hub does not let it in, and says what to show', async () => {
    const key = 'k'.repeat(40)
    const sha256 = createHash('sha256').update(key).digest('hex')
    const access = { anonymous: { publish: ['*'] }, keys: [{ name: 'ada', sha256, publish: ['*'] }] }
    const { url } = await serving({ access })
    const unknown = await run(['tail', 'demo', '--url', url])
    expect([unknown.exitCode, unknown.stderr]).toEqual([3, expect.stringContaining('Give a token')])
    const forbidden = await run(['tail', 'demo', '--url', url, '--token', key])
    expect([forbidden.exitCode, forbidden.stderr]).toEqual([3, expect.stringContaining('You may not read')])
    const wrong = await run(['tail', 'demo', '--url', url, '--token', 'no'.repeat(20)])
    expect([wrong.exitCode, wrong.stderr]).toEqual([3, expect.stringContaining('rejoin token explain')])
  })
})

test.each([
  ['ENOSPC', 1, 'rejoin: Cannot write the output: no space left on device.\n'],
  ['EPIPE', 0, ''],
])('an output that fails with %s ends it, and a file that lacks events is told of', async (code, exitCode, told) => {
  const { url, hub } = await serving()
  const tail = start(['tail', 'demo', '--quiet', '--url', url])
  await expect.poll(() => hub.readers('demo')).toBe(1)
  tail.emitOutput('error', Object.assign(new Error('no space left on device'), { code }))
  expect([await tail.ended, tail.stderr()]).toEqual([exitCode, told])
})

test('a hub that is not there is waited for, and the way to start one is shown', async () => {
  const url = await nobody()
  const tail = start(['tail', 'demo', '--url', url])
  await tail.says(
    new RegExp(`^rejoin: no hub answers at ${url}, trying again in .* m?s\\. Start one with: rejoin serve\n`),
  )
  const { hub } = await serving({ port: Number(new URL(url).port) })
  await tail.says(`rejoin: connected to ${url}, demo\n`)
  await hub.publish('demo', { text: 'here' })
  await tail.prints('here')
})

test('tail returns to a hub that closed its stream', async () => {
  const { url, hub } = await serving({ hub: { retryMs: 500 } })
  const tail = start(['tail', 'demo', '--url', url])
  await tail.says('connected')
  for (const { connection } of hub.admin.connections()) hub.admin.disconnectHere(connection, { retryMs: 500 })
  await tail.says(/rejoin: the hub let go \(admin\), trying again in .* m?s\nrejoin: connected again\n/)
})

test.each([
  ['log-unavailable', { error: { code: 'log-unavailable', message: 'The hub hears nothing from its log now.' } }],
  ['overloaded', { error: { code: 'overloaded', message: 'The hub has no room for this reader now.' } }],
  ['overloaded', { error: 'of somebody else' }],
])('a hub that rejects tail is quoted: %s', async (reason, body) => {
  const url = await rejecting(JSON.stringify(body))
  const tail = start(['tail', 'demo', '--url', url])
  await tail.says(`rejoin: the hub let go (${reason}), trying again in`)
})

test.each([
  [['tail'], 'missing required argument'],
  [['tail', 'demo', '--since', 'a b'], '--since is "a b". Give the id of an event, or earliest.'],
  [['tail', 'demo', '--since', 'earliest', '--last', '2'], 'Leave one out.'],
  [['tail', 'demo', '--last', 'many'], '--last is "many". Give a whole number of at least 1.'],
])('%j is rejected, with advice', async (args, advice) => {
  const { exitCode, stderr } = await run(args, { env: { REJOIN_URL: await nobody() } })
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining(advice)])
})

/** A server that answers everything with 503, and when to return. */
async function rejecting(body: string): Promise<string> {
  const headers = { 'Content-Type': 'application/json', 'Retry-After': '1' }
  const server = createServer((_, response) => response.writeHead(503, headers).end(body)).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** The program while it runs, ended with the test. */
function start(args: string[], options?: FakeProcessOptions) {
  const { host, stdout, stderr, emit, emitOutput } = fakeProcess(options)
  const ended = runProgram(args, host).then(() => host.exitCode)
  onTestFinished(async () => {
    emit('SIGINT')
    await ended
  })
  const until = (texts: string[], expected: string | RegExp) =>
    typeof expected === 'string'
      ? expect.poll(() => texts.join('')).toContain(expected)
      : expect.poll(() => texts.join('')).toMatch(expected)
  return {
    ended,
    emit,
    emitOutput,
    stderr: () => stderr.join(''),
    prints: (expected: string | RegExp) => until(stdout, expected),
    says: (expected: string | RegExp) => until(stderr, expected),
  }
}
