import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { onTestFinished } from 'vitest'

/**
 * Publishers in a thread of their own, so that they can publish while the hub's thread is stalled. Each has a connection, over which
 * it has published once.
 */
export async function keptPublishers({ url }: { url: string }) {
  const written = new Int32Array(new SharedArrayBuffer(4))
  const { port, protocol } = new URL(url)
  const workerData = { port: Number(port), isTls: protocol === 'https:', count: stalls, publishText, written }
  const worker = new Worker(publishers, { eval: true, workerData })
  onTestFinished(async () => void (await worker.terminate()))
  await once(worker, 'message')
  return {
    /**
     * Stalls this thread in each of the next turns, after the event loop has polled for bytes and before the code that waits for
     * this turn runs. In each stall a publish comes. Resolves to how each answer begins; without an answer it is an empty text.
     */
    async publishInStalls(): Promise<string[]> {
      const answers = once(worker, 'message')
      for (let next = 0; next < stalls; next += 1) {
        await new Promise(setImmediate)
        worker.postMessage(next)
        Atomics.wait(written, 0, next)
        Atomics.wait(written, 0, next + 1, stallMs)
      }
      return (await answers)[0]
    },
  }
}

export const publishText = 'POST /publish/demo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nlate'

// In all longer than a hub that stops waits for silence, and each longer than the silence that it waits for.
const stalls = 25
const stallMs = 60

const publishers = `
const { once } = require('node:events')
const { parentPort, workerData } = require('node:worker_threads')
const { port, isTls, count, publishText, written } = workerData
const { connect } = require(isTls ? 'node:tls' : 'node:net')

async function start() {
  const sockets = []
  for (let n = 0; n < count; n += 1) {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }).on('error', () => {})
    socket.write(publishText)
    await once(socket, 'data')
    sockets.push(socket)
  }
  const answers = sockets.map((socket) => new Promise((resolve) => {
    socket.once('data', (bytes) => resolve(bytes.toString().slice(0, 12))).once('close', () => resolve(''))
  }))
  parentPort.on('message', (index) => {
    sockets[index].write(publishText, () => {
      Atomics.add(written, 0, 1)
      Atomics.notify(written, 0)
    })
  })
  parentPort.postMessage('connected')
  parentPort.postMessage(await Promise.all(answers))
}

start()`
