import { expect, onTestFinished, test } from 'vitest'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { openRedisLog, operate } from '../redis/opened-log.ts'

const away = { code: 'log-unavailable', retryable: true }

test('a Valkey that flushes every second answers a publish when it has flushed (§5.6)', async () => {
  const server = await valkey('everysec')
  const hub = await openRedisLog(server.port, { durability: 'disk' })
  expect(hub.log.durability).toBe('disk')
  for (let round = 0; round < 3; round += 1) {
    await Promise.all(Array.from({ length: 200 }, (_, count) => hub.publish('a', `${round} ${count}`)))
    // Written and flushed: all that was answered is in the file, and nothing waits for the disk.
    const info = String(await operate(server.port, 'INFO', 'persistence'))
    expect(info).toContain('aof_buffer_length:0')
    expect(info).toContain('aof_pending_bio_fsync:0')
  }
  expect((await hub.read(['a'], hub.start)).data).toHaveLength(600)
})

test('a publish fails in time while Valkey does not flush, and is there when it does', async () => {
  const server = await valkey('everysec')
  const hub = await openRedisLog(server.port, { durability: 'disk', answerWithinMs: 500 })
  await operate(server.port, 'CONFIG', 'SET', 'appendfsync', 'no')
  await expect(hub.publish('a', '1')).rejects.toMatchObject({
    ...away,
    message: expect.stringContaining('appendfsync no'),
  })
  await operate(server.port, 'CONFIG', 'SET', 'appendfsync', 'always')
  await hub.publish('a', '2')
  expect((await hub.read(['a'], hub.start)).data).toEqual(['1', '2'])
})

test('a publish that waits for the disk does not hold readers up', async () => {
  const server = await valkey('everysec')
  const hub = await openRedisLog(server.port, { durability: 'disk' })
  const order: string[] = []
  const publishing = hub.publish('a', '1').then(() => order.push('publish'))
  await hub.applied(() => hub.events().length > 0)
  expect((await hub.read(['a'], hub.start)).data).toEqual(['1'])
  order.push('read')
  await publishing
  expect(order).toEqual(['read', 'publish'])
})

async function valkey(appendfsync: string): Promise<RedisServer> {
  const server = await startRedis({ program: 'valkey-server', settings: { appendfsync } })
  onTestFinished(() => server.remove())
  return server
}
