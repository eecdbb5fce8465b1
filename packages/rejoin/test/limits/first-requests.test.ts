import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createServer, type HttpServerOptions } from '../../src/http/http-server.ts'
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

  test('are read a few in a turn when each takes long to read', async () => {
    const { port, turns } = await countingServer({ workMs: 15 })
    const sockets = await connections(port, 60)
    const answers = sockets.map(answerTo)
    for (const socket of sockets) socket.write(request)
    expect(await Promise.all(answers)).toEqual(sockets.map(() => 'HTTP/1.1 204 No Content'))
    // Two take longer than a turn may; those that the system has handed over by then are still read.
    expect(Math.max(...turns)).toBeLessThanOrEqual(4)
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

  test('are not cut as silent while the hub itself does not read them', async () => {
    const { port, rejected } = await countingServer({ maxSilentPerIp: 2, workMs: 12 })
    // They ask as soon as they are connected. A busy machine may take longer to connect them all than a connection may be silent.
    const sockets = Array.from({ length: 200 }, () => connect(port, '127.0.0.1'))
    for (const socket of sockets) onTestFinished(() => void socket.destroy())
    const answers = sockets.map(answerTo)
    for (const socket of sockets) socket.write(request)
    expect(await Promise.all(answers)).toEqual(sockets.map(() => 'HTTP/1.1 204 No Content'))
    expect(rejected).toEqual([])
  })

  test('are answered, and not told 408, when reading them all takes longer than a head may', async () => {
    const { port } = await countingServer({ headersTimeoutMs: 3000, workMs: 15 })
    const sockets = await connections(port, 300)
    const answers = sockets.map(answerTo)
    for (const socket of sockets) socket.write(request)
    expect(new Set(await Promise.all(answers))).toEqual(new Set(['HTTP/1.1 204 No Content']))
  })

  test('do not save silent connections from their bound', async () => {
    const { port, rejected } = await countingServer({ maxSilentPerIp: 20 })
    await connections(port, 100)
    // A crowd every 200 ms, for longer than the second that a connection may be silent.
    for (let crowd = 0; crowd < 10; crowd += 1) {
      const sockets = await connections(port, 70)
      const answers = sockets.map(answerTo)
      for (const socket of sockets) socket.write(request)
      await Promise.all(answers)
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
    expect(rejected).toEqual(Array(80).fill('silent'))
  })
})

const request = 'GET / HTTP/1.1\r\nHost: hub\r\n\r\n'

interface CountingServerOptions extends Omit<HttpServerOptions, 'onReject'> {
  /**
   * How long each request occupies the server.
   * @defaultValue 0
   */
  readonly workMs?: number
}

/** A server that answers every request at once, and counts the requests of each turn of the event loop. */
async function countingServer({ workMs = 0, ...options }: CountingServerOptions = {}) {
  const rejected: string[] = []
  const turns: number[] = []
  const asked: string[] = []
  let isTurnOpen = false
  const { server, close } = createServer(
    { ...options, onReject: (kind) => rejected.push(kind) },
    (request, response) => {
      if (!isTurnOpen) {
        isTurnOpen = true
        turns.push(0)
        setImmediate(() => {
          isTurnOpen = false
        })
      }
      turns.push((turns.pop() ?? 0) + 1)
      asked.push(request.url ?? '')
      for (const doneAt = performance.now() + workMs; performance.now() < doneAt; );
      response.writeHead(204).end()
    },
  )
  onTestFinished(close)
  return { turns, asked, rejected, port: await listen(server, { address: '127.0.0.1', port: 0 }) }
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
