import { createHash } from 'node:crypto'
import type { Hub } from '@rejoin/hub'
import { describe, expect, test } from 'vitest'
import { run } from '../../support/fake-process.ts'
import { nobody, serving } from '../../support/http.ts'

describe('one event', () => {
  test('is published, and its id printed', async () => {
    const { url, hub } = await serving()
    const { stdout, stderr, exitCode } = await run(['publish', 'demo', 'hello', '--type', 'said', '--url', url])
    const [event] = await held(hub, 'demo')
    expect(event).toMatchObject({ type: 'said', data: 'hello' })
    expect([stdout, stderr, exitCode]).toEqual([`${event?.id}\n`, '', 0])
  })

  test('is printed as JSON when that is asked for', async () => {
    const { url, hub } = await serving()
    const { stdout } = await run(['publish', 'demo', '{"n":1}', '--json', '--url', url])
    const [event] = await held(hub, 'demo')
    expect(JSON.parse(stdout)).toEqual({ id: event?.id, channel: 'demo' })
  })

  test('is read from a pipe, line breaks and all', async () => {
    const { url, hub } = await serving()
    await run(['publish', 'demo', '--url', url], { stdin: ['one\ntw', 'o\n'] })
    await run(['publish', 'demo', '-', '--url', url], { stdin: 'three' })
    expect((await held(hub, 'demo')).map(({ data }) => data)).toEqual(['one\ntwo\n', 'three'])
  })

  test('without data has to be meant', async () => {
    const { url, hub } = await serving()
    const forgotten = await run(['publish', 'demo', '--url', url], { stdin: '' })
    expect([forgotten.exitCode, forgotten.stderr]).toEqual([1, expect.stringContaining('The input is empty')])
    expect((await run(['publish', 'demo', '', '--url', url])).exitCode).toBe(0)
    expect((await held(hub, 'demo')).map(({ data }) => data)).toEqual([''])
  })

  test('is there once when the same command is repeated under its key', async () => {
    const { url, hub } = await serving()
    const publish = () => run(['publish', 'demo', 'paid', '--idempotency-key', 'order-7', '--url', url])
    expect((await publish()).stdout).toBe((await publish()).stdout)
    expect(await held(hub, 'demo')).toHaveLength(1)
    const other = await run(['publish', 'demo', 'unpaid', '--idempotency-key', 'order-7', '--url', url])
    expect([other.exitCode, other.stderr]).toEqual([2, expect.stringContaining('was used for another publish')])
  })

  test('can be the newest value of a key, or for connected readers alone', async () => {
    const { url, hub } = await serving({ hub: { retain: ['prices'] } })
    expect((await run(['publish', 'prices', '1.07', '--key', 'EUR', '--url', url])).exitCode).toBe(0)
    expect((await run(['publish', 'demo', 'typing', '--live', '--url', url])).exitCode).toBe(0)
    expect(await hub.admin.window('prices')).toMatchObject({ events: 1 })
    expect(await hub.admin.window('demo')).toMatchObject({ events: 0 })
  })
})

describe('lines', () => {
  test('are an event each, as they are', async () => {
    const { url, hub } = await serving()
    const { stdout, stderr } = await run(['publish', 'demo', '--lines', '--url', url], {
      stdin: ['{"n":1}\r\ntw', 'o\n\nfour'],
    })
    const events = await held(hub, 'demo')
    expect(events.map(({ data }) => data)).toEqual(['{"n":1}', 'two', '', 'four'])
    expect(stdout).toBe(events.map(({ id }) => `${id}\n`).join(''))
    expect(stderr).toMatch(/^4 events published in \d+(\.\d)? m?s\.\n$/)
  })

  test('of JSON can each say where to and what', async () => {
    const { url, hub } = await serving()
    const lines = ['{"channel":"a","type":"x","data":{"n":1}}', '', '{"text":"plain"}']
    const { stdout } = await run(['publish', 'b', '--ndjson', '--json', '--url', url], { stdin: lines.join('\n') })
    expect(await held(hub, 'a')).toMatchObject([{ type: 'x', data: '{"n":1}' }])
    expect(await held(hub, 'b')).toMatchObject([{ type: 'message', data: 'plain' }])
    const printed = stdout.split('\n').filter(Boolean)
    expect(printed.map((line) => JSON.parse(line))).toMatchObject([
      { channel: 'a', line: 1 },
      { channel: 'b', line: 3 },
    ])
  })

  test('by the thousand are there in order', async () => {
    const { url, hub } = await serving()
    const numbers = Array.from({ length: 1000 }, (_, index) => String(index))
    const { exitCode } = await run(['publish', 'demo', '--lines', '--url', url], { stdin: numbers.join('\n') })
    expect(exitCode).toBe(0)
    expect((await held(hub, 'demo')).map(({ data }) => data)).toEqual(numbers)
  })

  test('are told of by their number when the hub rejects one, and those before it are published', async () => {
    const { url, hub } = await serving()
    const stdin = '{"data":1}\n{"data":2}\n{"data":3,"type":"hello"}\n{"data":4}\n'
    const { exitCode, stderr } = await run(['publish', 'demo', '--ndjson', '--url', url], { stdin })
    expect(stderr).toBe(
      'rejoin: Line 3: The type "hello" belongs to the protocol. Choose another name. Before it, 2 events were published.\n',
    )
    expect(exitCode).toBe(2)
    expect((await held(hub, 'demo')).map(({ data }) => data)).toEqual(['1', '2'])
  })

  test.each([
    ['{"price":3}', 'Line 1 is no event such as {"channel": "orders/42", "data": 1}. To publish lines as they are'],
    [
      'price',
      "Line 1 is not JSON: unexpected token 'p'. To publish lines as they are, say --lines. Nothing was published.",
    ],
  ])('%j is no event, with advice', async (stdin, advice) => {
    const { url } = await serving()
    const { exitCode, stderr } = await run(['publish', 'demo', '--ndjson', '--url', url], { stdin })
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(advice)])
  })

  test('need a channel, of their own or for all', async () => {
    const { url } = await serving()
    const { stderr } = await run(['publish', '--ndjson', '--url', url], { stdin: '{"data":1}' })
    expect(stderr).toContain('Line 1 names no channel.')
  })

  test('under a key can be sent again when the file has grown', async () => {
    const { url, hub } = await serving()
    const publish = (stdin: string) =>
      run(['publish', 'demo', '--lines', '--idempotency-key', 'import', '--url', url], { stdin })
    await publish('1\n2\n')
    await publish('1\n2\n3\n')
    expect((await held(hub, 'demo')).map(({ data }) => data)).toEqual(['1', '2', '3'])
  })

  test('in a terminal show how far they are, and no ids', async () => {
    const { url } = await serving()
    const { stdout, stderr } = await run(['publish', 'demo', '--lines', '--url', url], { stdin: 'a\nb\n', isTTY: true })
    expect(stdout).toBe('')
    expect(stderr).toMatch(/^\r\u001b\[K0 published\r\u001b\[K2 events published in /)
  })
})

describe('a publish that cannot work is rejected, with advice', () => {
  test('without a hub: what to start', async () => {
    const url = await nobody()
    const { exitCode, stderr } = await run(['publish', 'demo', 'x', '--url', url])
    expect([exitCode, stderr]).toEqual([4, `rejoin: No hub answers at ${url}. Start one with: rejoin serve\n`])
  })

  test('to an address that can be no hub’s: why', async () => {
    const { exitCode, stderr } = await run(['publish', 'demo', 'x', '--url', 'http://127.0.0.1:1'])
    expect([exitCode, stderr]).toEqual([4, 'rejoin: Cannot reach http://127.0.0.1:1: bad port.\n'])
  })

  test('without the right: which token to show', async () => {
    const access = { keys: [{ name: 'shop', sha256: '0'.repeat(64), publish: ['*'] }] }
    const { url } = await serving({ access })
    const without = await run(['publish', 'demo', 'x', '--url', url])
    expect([without.exitCode, without.stderr]).toEqual([3, expect.stringContaining('REJOIN_TOKEN')])
    const wrong = await run(['publish', 'demo', 'x'], { env: { REJOIN_URL: url, REJOIN_TOKEN: 'x'.repeat(40) } })
    expect([wrong.exitCode, wrong.stderr]).toEqual([3, expect.stringContaining('rejoin token explain')])
    expect(wrong.stderr).not.toContain('x'.repeat(40))
  })

  test('without the right: why, and what to do, each said once', async () => {
    const key = 'k'.repeat(40)
    const sha256 = createHash('sha256').update(key).digest('hex')
    const { url } = await serving({ access: { keys: [{ name: 'shop', sha256, publish: ['orders'] }] } })
    const said = async (...flags: string[]) => (await run(['publish', 'demo', 'x', '--url', url, ...flags])).stderr
    expect(await said()).toBe(
      'rejoin: This hub wants to know who you are. Give a token: --token, or REJOIN_TOKEN in the environment.\n',
    )
    expect(await said('--token', 'x'.repeat(40))).toMatch(
      /^rejoin: The token [^.]+\. [^.]+\. See why with: rejoin token explain\n$/,
    )
    expect(await said('--token', key)).toMatch(
      /^rejoin: You may not use [^.]+\. See what you may do with: rejoin token explain\n$/,
    )
  })

  test.each([
    [['publish'], 'Say where to publish'],
    [['publish', 'demo'], 'There is nothing to publish.'],
    [['publish', 'demo', 'x', '--lines'], 'The data is on the command line'],
    [['publish', 'demo', '-', '--lines', '--ndjson'], 'Choose one.'],
    [['publish', 'demo', 'x', 'y'], 'too many arguments'],
    [['publish', 'demo', 'x', '--url', 'localhost:4747'], 'Give one that begins with http://'],
  ])('%j', async (args, advice) => {
    const { exitCode, stderr } = await run(args)
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(advice)])
  })

  test('to a name that is no channel', async () => {
    const { url } = await serving()
    expect((await run(['publish', 'a//b', 'x', '--url', url])).exitCode).toBe(2)
  })

  test('of input that is no text', async () => {
    const { url } = await serving()
    const { exitCode, stderr } = await run(['publish', 'demo', '--url', url], {
      stdin: [Uint8Array.of(0x61, 0xff, 0x0a)],
    })
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('The input is not UTF-8.')])
  })
})

/** What a channel holds. */
async function held(hub: Hub, channel: string) {
  const events: { id: string; type: string; data: string }[] = []
  const { events: count } = await hub.admin.window(channel)
  if (count === 0) return events
  for await (const event of hub.stream(channel, { from: 'earliest' })) {
    if (event.type !== 'hello') events.push(event as never)
    if (events.length === count) break
  }
  return events
}
