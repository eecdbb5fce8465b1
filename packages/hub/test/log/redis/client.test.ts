import { expect, test } from 'vitest'
import { connectorOf } from '../../../src/log/redis/client.ts'

/** As much of a client of ioredis as is used, with what was asked of the one that was made from it. */
function ioredis(own: object = {}) {
  const made: { options: unknown[]; disconnects: number } = { options: [], disconnects: 0 }
  const client = {
    ...own,
    duplicate(...options: unknown[]) {
      made.options = options
      return client
    },
    call: async () => 'PONG',
    connect: async () => undefined,
    disconnect() {
      made.disconnects += 1
    },
    on: () => client,
    once: () => client,
  }
  return { client, made }
}

test('a connection that many give up at once is ended once', async () => {
  const { client, made } = ioredis()
  const connection = await connectorOf(client, 'key').connect()
  connection.destroy()
  connection.destroy()
  expect(made.disconnects).toBe(1)
})

test('the connections of a Cluster have the password of its client, whatever the package does with options', async () => {
  const { client, made } = ioredis({
    isCluster: true,
    options: { redisOptions: { password: 'p', commandTimeout: 10 } },
  })
  await connectorOf(client, 'key').connect()
  expect(made.options).toMatchObject([[], { redisOptions: { password: 'p', commandTimeout: undefined } }])
})

test('the connections of a Cluster ask its masters, whatever its client reads from', async () => {
  const { client, made } = ioredis({ isCluster: true, options: { scaleReads: 'slave' } })
  await connectorOf(client, 'key').connect()
  expect(made.options).toMatchObject([[], { scaleReads: 'master' }])
})

test('an object that is no client of a supported package is rejected, with the list of those packages', () => {
  expect(() => connectorOf({} as never, 'key')).toThrow(/ioredis or redis/)
})
