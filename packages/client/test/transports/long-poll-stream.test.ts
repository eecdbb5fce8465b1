import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { expect, onTestFinished, test } from 'vitest'
import { connect } from '../../src/index.ts'

test('a stream of polls loses nothing and doubles nothing when its connections are cut', async () => {
  const hub = await createHub({ log: memoryLog(), retryMs: 500 })
  const handle = nodeHandler(hub)
  let streams = 0
  const server = createServer((request, response) => {
    if (!request.url?.includes('waitMs=')) streams += 1
    handle(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const stream = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}/events/a`, {
    transports: ['long-poll'],
    retryMs: 10,
  })
  onTestFinished(async () => {
    stream.close()
    await hub.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const got: unknown[] = []
  let look = () => {}
  stream.on('*', ({ data }) => {
    got.push(data)
    look()
  })
  stream.onSync(() => got.push('gap'))
  await new Promise<void>((resolve) => {
    stream.onState(({ state }) => {
      if (state === 'connected') resolve()
    })
  })
  // Until it has a place, there is nothing to lose and nothing to come back to.
  while (stream.cursor === null) await new Promise((resolve) => setImmediate(resolve))

  for (let n = 0; n < 300; n += 1) {
    await hub.publish('a', { data: n })
    if (n % 100 === 50) server.closeAllConnections()
    if (n % 10 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  await new Promise<void>((resolve) => {
    look = () => {
      if (got.length >= 300) resolve()
    }
    look()
  })
  expect(got).toEqual(Array.from({ length: 300 }, (_, n) => n))
  expect(streams).toBe(0)
})
