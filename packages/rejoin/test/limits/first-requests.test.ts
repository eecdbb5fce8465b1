import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createServer } from '../../src/http/http-server.ts'
import { listen } from '../../src/http/listen.ts'

describe('readers that have connected, and then ask all at once', () => {
  test('are read over many turns of the event loop, and all are answered', async () => {
    const { port, turns } = await countingServer()
    const sockets = await connections(port, 600)
    const answers = sockets.map(answerTo)
    for (const socket of sockets) socket.write(request)
    expect(await Promise.all(answers)).toEqual(sockets.map(() => 'HTTP/1.1 204 No Content'))
    expect(Math.max(...turns)).toBeLessThanOrEqual(64)
  })

  test('do not hold up a connection that has asked before', async () => {
    const { port, asked } = await countingServer()
    const [publisher] = (await connections(port, 1)) as [Socket]
    publisher.write(request)
    await answerTo(publisher)
    const sockets = await connections(port, 600)
    const answers = sockets.map(answerTo)
    for (const socket of sockets) socket.write(request)
    publisher.write(request.replace('/', '/publisher'))
    await Promise.all(answers)
    expect(asked.indexOf('/publisher')).toBeLessThan(200)
  })

  test('may leave before they are read', async () => {
    const { port, asked } = await countingServer()
    const sockets = await connections(port, 600)
    const [stays] = (await connections(port, 1)) as [Socket]
    for (const socket of sockets) socket.write(request, () => socket.resetAndDestroy())
    stays.write(request.replace('/', '/stays'))
    expect(await answerTo(stays)).toBe('HTTP/1.1 204 No Content')
    expect(asked).toContain('/stays')
  })
})

const request = 'GET / HTTP/1.1\r\nHost: hub\r\n\r\n'

/** A server that answers every request at once, and counts the requests of each turn of the event loop. */
async function countingServer() {
  const turns: number[] = []
  const asked: string[] = []
  let isTurnOpen = false
  const { server, close } = createServer({ onReject: () => undefined }, (request, response) => {
    if (!isTurnOpen) {
      isTurnOpen = true
      turns.push(0)
      setImmediate(() => {
        isTurnOpen = false
      })
    }
    turns.push((turns.pop() ?? 0) + 1)
    asked.push(request.url ?? '')
    response.writeHead(204).end()
  })
  onTestFinished(close)
  return { turns, asked, port: await listen(server, { address: '127.0.0.1', port: 0 }) }
}

/** Resolves when the server has accepted them all: it accepts in order, and answers the last. */
async function connections(port: number, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1'))
  for (const socket of sockets) onTestFinished(() => void socket.destroy())
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  const last = connect(port, '127.0.0.1')
  last.write(request)
  await answerTo(last)
  last.destroy()
  return sockets
}

async function answerTo(socket: Socket): Promise<string> {
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  return bytes.toString().split('\r\n')[0] as string
}
