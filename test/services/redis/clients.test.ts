import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { openLogOf, openRedisLog, operate } from './opened-log.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.remove())

const ioredis = (options: object) => new Redis({ port: server.port, lazyConnect: true, ...options })
const nodeRedis = (options: object, socket: object = {}) =>
  createClient({ socket: { port: server.port, ...socket }, ...options })

// What an application may have set for its own use. 36 is how the protocol marks a text.
const clients = {
  'ioredis that gives a command little time': () => ioredis({ commandTimeout: 200 }),
  'ioredis that gives up a quiet socket': () => ioredis({ socketTimeout: 200 }),
  'ioredis with a prefix': () => ioredis({ keyPrefix: 'app:' }),
  'ioredis with the newer protocol': () => ioredis({ protocol: 3 }),
  'redis that gives up a quiet socket': () => nodeRedis({}, { socketTimeout: 200 }),
  'redis that reads texts as bytes': () => nodeRedis({ commandOptions: { typeMapping: { 36: Buffer } } }),
  'redis with a prefix': () => nodeRedis({ keyPrefix: 'app:' }),
  'redis with the newer protocol': () => nodeRedis({ RESP: 3 }),
  'the package that is installed, by an address': () => `redis://127.0.0.1:${server.port}`,
}

describe.each(Object.entries(clients))('a log made from a client of %s', (name, client) => {
  test('is the same log, over two connections that last', async () => {
    const prefix = name.replaceAll(' ', '-')
    const before = await connections()
    const hub = await openLogOf(client(), { prefix })
    const own = (await connections()).filter(({ id }) => before.every((other) => other.id !== id))
    expect(own).toHaveLength(2)
    // Longer than these clients would wait, while nothing comes.
    await until(async () => (await connections()).some(({ id, age }) => age > 0 && own.some((it) => it.id === id)))
    const there = (await connections()).map(({ id }) => id)
    expect(own.filter(({ id }) => there.includes(id))).toHaveLength(2)
    const other = await openRedisLog(server.port, { prefix })
    const [place] = await other.publish('a', 'ö')
    await hub.reached(place!)
    expect([hub.events().map(({ data }) => data), hub.idOf(place!)]).toEqual([['ö'], other.idOf(place!)])
  })
})

test('a wrong password is called that, and not shown', async () => {
  const locked = await startRedis()
  await operate(locked.port, 'CONFIG', 'SET', 'requirepass', 'right')
  const url = `redis://:hunter2@127.0.0.1:${locked.port}`
  for (const client of [new Redis(url, { lazyConnect: true }), createClient({ url })]) {
    const error: Error = await openLogOf(client).then(
      () => new Error('opened'),
      (reason) => reason,
    )
    expect(error).toMatchObject({ code: 'log-unavailable', message: expect.stringContaining('WRONGPASS') })
    expect(error.message).not.toContain('hunter2')
  }
  await locked.remove()
})

/** Without that of who asks. */
async function connections(): Promise<{ id: string; age: number }[]> {
  const list = String(await operate(server.port, 'CLIENT', 'LIST'))
  return list
    .split('\n')
    .filter((line) => line !== '' && !line.includes('cmd=client|list'))
    .map((line) => ({ id: /\bid=(\d+)/.exec(line)?.[1] ?? '', age: Number(/\bage=(\d+)/.exec(line)?.[1]) }))
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 100))
}
