import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { expect, onTestFinished, test } from 'vitest'
import { connect } from '../src/index.ts'
import { deferred, useStage } from './support/stage.ts'

useStage()

test('a hub that knows who reads ends the dead connection of a stream as soon as the next one is there (§4.13)', async () => {
  const hub = await createHub({ log: memoryLog() })
  const authorize = () => ({ subject: 'me', subscribe: ['*'], publish: [] })
  const server = createServer(nodeHandler(hub, { authorize }))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await hub.close()
    server.closeAllConnections()
  })
  const dead = deferred<Response>()
  const stream = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}/events/a`, {
    async fetch(input, { signal: _, ...init } = {}) {
      // Nobody tells the hub that this one is given up.
      const response = await fetch(input, init)
      dead.resolve(response.clone())
      return response
    },
  })
  onTestFinished(() => stream.close())
  const { body } = await dead.promise
  stream.reconnect()
  let told = ''
  for await (const text of body!.pipeThrough(new TextDecoderStream())) told += text
  expect(told).toContain('{"reason":"replaced"}')
})
