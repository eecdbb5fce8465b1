import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { expect, onTestFinished, test } from 'vitest'
import { serveListener } from '../support/http-server.ts'

test('a stream that another part of the program ends gets nothing behind its end, and the connection stays usable', async () => {
  const { hub, responses, socket, ask, read } = await serve()
  ask('/events/a')
  await read(/event: hello/)
  socket.pause()
  const [response] = responses
  // More than the kernel takes, so that the end has to wait.
  while (response?.socket?.writableLength === 0) {
    await hub.publish('a', { text: 'x'.repeat(200_000) })
    await new Promise((resolve) => setImmediate(resolve))
  }
  response?.end()
  await hub.publish('a', { data: 'behind' })
  await new Promise((resolve) => setImmediate(resolve))
  socket.resume()
  await read(/\n\r\n0\r\n\r\n/)
  ask('/other')
  const said = await read(/404 Not Found/)
  expect(said).not.toContain('behind')
  // The last chunk, and then the next answer.
  expect(said).toMatch(/\n\r\n0\r\n\r\nHTTP\/1\.1 404/)
  expect(hub.readers('a')).toBe(0)
})

/** A hub in a program, and one raw connection to it. */
async function serve() {
  const hub = await createHub({ log: memoryLog() })
  const handler = nodeHandler(hub)
  const responses: ServerResponse[] = []
  const server = await serveListener(hub, (request, response) => {
    responses.push(response)
    handler(request, response)
  })
  const socket = connect(server.port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let received = ''
  socket.setEncoding('latin1')
  socket.on('data', (text) => {
    received += text
  })
  return {
    hub,
    responses,
    socket,
    ask: (path: string) => socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`),
    async read(wanted: RegExp): Promise<string> {
      await expect.poll(() => wanted.test(received), { timeout: 10_000 }).toBe(true)
      return received
    },
  }
}
