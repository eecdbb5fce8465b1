import { redisLog } from '@rejoin/hub/redis'
import { logContract } from '@rejoin/hub/testing'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { type RedisServer, startRedis } from '../faults/redis-server.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.remove())

const clients = {
  ioredis: () => new Redis({ port: server.port, lazyConnect: true }),
  redis: () => createClient({ socket: { port: server.port } }),
}

describe.each(Object.entries(clients))('redis log, with a client of %s', (name, client) => {
  logContract({
    test,
    source: ({ window, place }) => ({
      name: 'redis',
      open: (environment) => {
        const prefix = `${name}-${place}`.replaceAll(/[^\w.]+/g, '-')
        return redisLog(client(), { prefix, clock: 'hub', ...(window ? { window } : {}) }).open(environment)
      },
    }),
    differs: [
      {
        reason: 'a restart of the hub loses nothing, so there is nothing to tell apart',
        tests: ['an id from before everything was lost is told from one of today'],
      },
      {
        reason: 'its feed holds more than the windows do, for as long as it is told to',
        tests: ['a tail that can no longer start where it was asked to says from where it goes on'],
      },
    ],
  })
})
