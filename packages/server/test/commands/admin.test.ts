import { describe, expect, test } from 'vitest'
import { run } from '../fake-process.ts'
import { nobody, open, serving } from '../http.ts'

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
    expect(stdout).toMatch(new RegExp(`^news \\(ended\\) +1 +\\d+ +\\d\\.\\d s {2}${id}$`, 'm'))
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
  })

  test('are for admins: others hear what to show', async () => {
    const { url } = await serving({ admin: { token } })
    const without = await run(['channels', '--url', url])
    expect([without.exitCode, without.stderr]).toEqual([3, expect.stringContaining('REJOIN_ADMIN_TOKEN')])
    const wrong = await run(['channels', '--url', url, '--token', `${token}!`])
    expect([wrong.exitCode, wrong.stderr]).toEqual([3, expect.stringContaining('It may have another token')])
  })

  test('of a hub that is not there: what to start', async () => {
    const { exitCode, stderr } = await run(['channels', '--url', await nobody()])
    expect([exitCode, stderr]).toEqual([4, expect.stringContaining('Start one with: rejoin serve')])
  })
})

describe('drain', () => {
  test('lets all readers go, and waits until they are gone', async () => {
    const { url, adminUrl, hub } = await serving({ admin: { port: 0 } })
    for (let n = 0; n < 3; n += 1) (await open(url, '/events/demo')).resume()
    const { stdout, exitCode } = await run(['drain', '--within', '1s', '--url', adminUrl as string])
    expect([stdout, exitCode]).toEqual(['All 3 readers are gone.\n', 0])
    expect([...hub.connections()]).toEqual([])
  })

  test('does not wait when it is told so, and answers in JSON', async () => {
    const { url, adminUrl } = await serving({ admin: { port: 0 } })
    const stream = await open(url, '/events/demo')
    const ended = new Promise((resolve) => stream.resume().once('end', resolve))
    const { stdout } = await run(['drain', '--no-wait', '--within', '1s', '--json', '--url', adminUrl as string])
    expect(JSON.parse(stdout)).toEqual({ draining: true, withinMs: 1000, readers: 1 })
    await ended
  })
})
