import { connect, type Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { memoryLog } from '@rejoin/hub/memory'
import { expect, test } from 'vitest'
import { serveHub } from '../support/http-server.ts'
import { publish } from '../support/publishing.ts'

test('a reader whose log does not answer is told that the hub does, in a second or two', async () => {
  const { hub, open } = await serveHub({
    hotBytes: 1,
    log: {
      name: 'mute',
      open: async (environment) => {
        const log = await memoryLog().open(environment)
        log.read = () => new Promise(() => {})
        return log
      },
    },
  })
  const [cursor = ''] = await publish(hub, 'a', 1, 2)
  const reader = await open('/events/a', { 'last-event-id': cursor })
  expect(reader.status).toBe(200)
  expect(reader.events).toEqual([])
  reader.cut()
})

test('twenty rushes of readers leave no reader, no connection, no timer and no memory behind', async () => {
  // All have one address and one cursor, and would be taken for one client that does not wait.
  const { hub, port, connections } = await serveHub({ limits: { maxRapidReturns: Number.POSITIVE_INFINITY } })
  const [cursor = ''] = await publish(hub, 'a', ...Array.from({ length: 51 }, (_, index) => index))
  const rush = async () => {
    const readers = await Promise.all(Array.from({ length: 40 }, () => readUntil(port, cursor, 'data: 50\n')))
    for (const reader of readers) reader.resetAndDestroy()
    await expect.poll(connections).toBe(0)
    await expect.poll(() => [...hub.admin.connections()].length).toBe(0)
  }
  // The first ones compile the code, and fill what is kept on purpose.
  for (let done = 0; done < 5; done += 1) await rush()
  const before = await whatIsLeft()
  for (let done = 0; done < 20; done += 1) await rush()
  await expect.poll(async () => (await whatIsLeft()).resources).toEqual(before.resources)
  expect((await whatIsLeft()).heapBytes / before.heapBytes).toBeLessThan(1.1)
})

/** A connection that has got everything up to a text. */
function readUntil(port: number, cursor: string, text: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let got = ''
    socket.setEncoding('utf8').on('data', (part) => {
      got += part
      if (got.includes(text)) resolve(socket)
    })
    socket.on('error', reject)
    socket.write(`GET /events/a HTTP/1.1\r\nHost: 127.0.0.1\r\nLast-Event-ID: ${cursor}\r\n\r\n`)
  })
}

/** The timers, sockets and other things that this process waits for, by kind, and its memory after a collection. */
async function whatIsLeft(): Promise<{ resources: Record<string, number>; heapBytes: number }> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  // Twice, because what the first round finalises only the second one frees.
  collect()
  await new Promise(setImmediate)
  collect()
  const resources: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
  return { resources, heapBytes: process.memoryUsage().heapUsed }
}
