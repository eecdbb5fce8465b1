import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { run } from '../../support/fake-process.ts'
import { nobody, open, serving, until } from '../../support/http.ts'

const token = 'an admin token of some length'.replaceAll(' ', '-')

describe('channels', () => {
  test('are listed with what they hold', async () => {
    const { adminUrl, hub } = await serving({ admin: { port: 0 } })
    for (const data of [1, 2]) await hub.publish('orders/42', { data })
    const { id } = await hub.publish('news', { data: 'rain' })
    await hub.end('news')
    const { stdout, exitCode } = await run(['channels', '--url', adminUrl as string])
    expect(exitCode).toBe(0)
    expect(stdout.split('\n')[0]).toBe('channel       events  bytes  oldest  newest id')
    expect(stdout).toMatch(new RegExp(`^news \\(ended\\) +1 +\\d+ +\\d+(\\.\\d)? m?s {2}${id}$`, 'm'))
    expect(stdout).toMatch(/^orders\/42 +2 /m)
  })

  test('are JSON lines when that is asked for, and those of a prefix', async () => {
    const { url, hub } = await serving({ admin: { token } })
    for (const channel of ['orders/1', 'orders/2', 'news']) await hub.publish(channel, { data: 1 })
    const { stdout } = await run(['channels', 'orders/', '--json'], {
      env: { REJOIN_URL: url, REJOIN_ADMIN_TOKEN: token },
    })
    const listed = stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line).channel)
    expect(listed).toEqual(['orders/1', 'orders/2'])
  })

  test('that are not there are told of', async () => {
    const { adminUrl } = await serving({ admin: { port: 0 } })
    const { stdout, stderr } = await run(['channels', '--url', adminUrl as string])
    expect([stdout, stderr]).toEqual(['', 'No channel holds anything.\n'])
    const below = await run(['channels', 'zz', '--url', adminUrl as string])
    expect([below.stdout, below.stderr]).toEqual(['', 'No channel begins with "zz".\n'])
  })

  test('are for admins: others hear what to show', async () => {
    const { url } = await serving({ admin: { token } })
    const without = await run(['channels', '--url', url])
    expect([without.exitCode, without.stderr]).toEqual([3, expect.stringContaining('REJOIN_ADMIN_TOKEN')])
    const wrong = await run(['channels', '--url', url, '--token', `${token}!`])
    expect([wrong.exitCode, wrong.stderr]).toEqual([
      3,
      expect.stringContaining('If several hubs answer at this address'),
    ])
  })

  test('of a hub that is not there: what to start', async () => {
    const { exitCode, stderr } = await run(['channels', '--url', await nobody()])
    expect([exitCode, stderr]).toEqual([4, expect.stringContaining('Start one with: rejoin serve')])
  })
})

describe('a server that is no hub', () => {
  const strange = [
    'null',
    '[]',
    '{}',
    '"hello"',
    '{"formats":null,"channels":null,"total":null}',
    '{"formats":[null],"channels":[null],"total":"\\u001b[2J"}',
    '{"formats":[{"format":"ulid","version":null,"since":{"ms":1e99,"seq":0}}],"channels":[{}],"total":{}}',
    '{"isNew":true,"dryRun":false,"before":{},"after":{}}',
  ]
  test.each([[['migrate', 'ids']], [['migrate', 'ids', 'uuidv7']], [['channels']], [['drain']]])(
    'is named by %s, whatever it answers',
    async (args) => {
      for (const body of strange) {
        const url = await answering(body)
        const { exitCode, stdout, stderr } = await run([...args, '--url', url])
        expect([stdout, stderr]).toEqual(['', `rejoin: What answers at ${url} is no hub. Check the address.\n`])
        expect(exitCode).not.toBe(0)
      }
    },
  )
})

async function answering(body: string): Promise<string> {
  const server = createServer((_request, response) => response.end(body))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('drain', () => {
  test('lets all readers go, and waits until they are gone', async () => {
    const { url, adminUrl, hub } = await serving({ admin: { port: 0 } })
    for (let n = 0; n < 3; n += 1) (await open(url, '/events/demo')).resume()
    const { stdout, exitCode } = await run(['drain', '--within', '1s', '--url', adminUrl as string])
    expect([stdout, exitCode]).toEqual(['All 3 readers are gone. The hub takes no readers until it is restarted.\n', 0])
    expect([...hub.admin.connections()]).toEqual([])
  })

  test('does not wait when it is told so, and answers in JSON', async () => {
    const { url, adminUrl } = await serving({ admin: { port: 0 } })
    const stream = await open(url, '/events/demo')
    const ended = new Promise((resolve) => stream.resume().once('end', resolve))
    const { stdout } = await run([
      'drain',
      '--no-wait',
      '--announce',
      '1s',
      '--within',
      '1s',
      '--json',
      '--url',
      adminUrl as string,
    ])
    expect(JSON.parse(stdout)).toEqual({ draining: true, withinMs: 1000, readers: 1 })
    await ended
  })
})

describe('migrate ids', () => {
  test('shows how ids are written, says what it would do, and does it while readers read', async () => {
    const { url, adminUrl, hub } = await serving({ admin: { port: 0 } })
    const at = ['--url', adminUrl as string]
    const { id: early } = await hub.publish('demo', { text: '1' })
    const dry = await run(['migrate', 'ids', 'uuidv7', '--id-version', '2', '--dry-run', ...at])
    expect(dry.stdout).toContain('New events would get v2_ uuidv7 ids instead of ulid ids')
    expect((await run(['migrate', 'ids', '--json', ...at])).stdout).toBe(
      '{"formats":[{"format":"ulid","version":null,"since":null}]}\n',
    )
    const done = await run(['migrate', 'ids', 'uuidv7', '--id-version', '2', ...at])
    expect([done.exitCode, done.stdout]).toEqual([0, expect.stringContaining('New events get v2_ uuidv7 ids')])
    const { id } = await hub.publish('demo', { text: '2' })
    expect(id).toMatch(/^v2_[0-9a-f]{8}-/)
    const stream = await open(url, `/events/demo?lastEventId=${early}`)
    const read = await until(stream, `id: ${id}\n`)
    expect(read).toContain('"resumed":true')
    expect(read).not.toContain('sync-required')
    const listed = (await run(['migrate', 'ids', ...at])).stdout
    expect(listed).toMatch(/^ulid +the beginning\nv2_ uuidv7 +\d{4}-\d\d-\d\dT/m)
    const again = await run(['migrate', 'ids', 'uuidv7', '--id-version', '2', ...at])
    expect(again.stdout).toContain('already. Nothing was to be done.')
  })

  test.each([
    ['a format that there is not', ['ulid7'], 'Allowed choices are ulid, uuidv7'],
    ['a version that cannot be', ['ulid', '--id-version', '0'], 'Give a whole number from 1 to 999'],
    ['ids that count, where they tell the time', ['sequence'], 'cannot get another clock: begin another log'],
    ['ids that this log cannot keep', ['snowflake'], 'need a log that survives restarts'],
  ])('rejects %s, with the reason', async (_, words, reason) => {
    const { adminUrl } = await serving({ admin: { port: 0 } })
    const { exitCode, stderr } = await run(['migrate', 'ids', ...words, '--url', adminUrl as string])
    expect([exitCode, stderr]).toEqual([expect.any(Number), expect.stringContaining(reason)])
    expect(exitCode).not.toBe(0)
  })

  test('is for admins', async () => {
    const { url } = await serving({ admin: { token } })
    const { exitCode } = await run(['migrate', 'ids', 'uuidv7', '--url', url])
    expect(exitCode).toBe(3)
  })
})
