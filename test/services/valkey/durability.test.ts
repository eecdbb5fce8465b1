import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { type OpenedLog, openRedisLog, operate } from '../redis/opened-log.ts'

const away = { code: 'log-unavailable', retryable: true }

// Valkey 8.0 confirms under `everysec` what it has not flushed: https://github.com/redis/redis/pull/13793
test('a Valkey that confirms a flush before it has flushed is rejected for durability disk, with what to do (§5.6)', async () => {
  const server = await valkey('everysec')
  await expect(openRedisLog(server.port, { durability: 'disk' })).rejects.toMatchObject({
    code: 'invalid-option',
    message: expect.stringMatching(/confirms a flush \(WAITAOF\) before it has flushed.* set appendfsync always/),
  })
  const hub = await openRedisLog(server.port)
  await hub.publish('a', '1')
  expect(hub.log.durability).toBe('memory')
})

test('a Valkey that was busy when the hub started is found out as soon as it is less busy', async () => {
  const server = await valkey('everysec')
  const load = startLoad(server.port)
  const hub = await openWhileBusy(server.port)
  await load.end()
  let answered = 0
  const publishing = async () => {
    for (; answered < 50; answered += 1) await hub.publish('a', 'x')
  }
  await expect(publishing()).rejects.toMatchObject({
    ...away,
    message: expect.stringContaining('before it has flushed'),
  })
  // Two confirmations in a second prove nothing, a third does.
  expect(answered).toBeLessThanOrEqual(3)
})

test('a Valkey that flushes every event gives durability disk', async () => {
  const server = await valkey('always')
  const hub = await openRedisLog(server.port, { durability: 'disk' })
  expect(hub.log.durability).toBe('disk')
  await Promise.all(Array.from({ length: 200 }, (_, count) => hub.publish('a', String(count))))
  const info = String(await operate(server.port, 'INFO', 'persistence'))
  expect(info).toContain('aof_buffer_length:0')
  expect(info).toContain('aof_pending_bio_fsync:0')
  expect((await hub.read(['a'], hub.start)).data).toHaveLength(200)
})

test.each([
  ['no', 'appendfsync no'],
  ['everysec', 'before it has flushed'],
])(
  'a publish fails in time once Valkey is set to appendfsync %s, and publishes go on once it flushes again',
  async (appendfsync, reason) => {
    const server = await valkey('always')
    const hub = await openRedisLog(server.port, { durability: 'disk', answerWithinMs: 500 })
    await operate(server.port, 'CONFIG', 'SET', 'appendfsync', appendfsync)
    await expect(hub.publish('a', '1')).rejects.toMatchObject({ ...away, message: expect.stringContaining(reason) })
    expect((await hub.read(['a'], hub.start)).data).toEqual(['1'])
    await operate(server.port, 'CONFIG', 'SET', 'appendfsync', 'always')
    await hub.publish('a', '2')
    expect((await hub.read(['a'], hub.start)).data).toEqual(['1', '2'])
  },
)

/** Writes in every turn of the server: then it confirms only what it has flushed. */
function startLoad(port: number): { end(): Promise<void> } {
  const args = ['-p', String(port), '-t', 'set', '-c', '50', '-P', '64', '-n', '1000000000', '-q']
  const child = spawn('valkey-benchmark', args, { stdio: 'ignore' })
  const exited = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))
  return {
    async end() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** A busy server has idle turns too, in which the hub finds it out at once. */
async function openWhileBusy(port: number): Promise<OpenedLog> {
  for (;;) {
    const hub = await openRedisLog(port, { durability: 'disk' }).catch((error: unknown) => {
      expect(error).toMatchObject({ message: expect.stringContaining('before it has flushed') })
    })
    if (hub) return hub
  }
}

async function valkey(appendfsync: string): Promise<RedisServer> {
  const server = await startRedis({ program: 'valkey-server', settings: { appendfsync } })
  onTestFinished(() => server.remove())
  return server
}
