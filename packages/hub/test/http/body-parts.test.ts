import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createHub } from '@rejoin/hub'
import { fetchHandler } from '@rejoin/hub/fetch'
import { readJson } from '@rejoin/hub/internal'
import { memoryLog } from '@rejoin/hub/memory'
import { expect, onTestFinished, test } from 'vitest'

test('a body in chunks of one byte takes about its own length of memory, not two hundred times that (§5.7)', async () => {
  const hub = await createHub({ log: memoryLog() })
  onTestFinished(() => hub.close())
  const bytes = 200_000
  const before = memoryInUse()
  let held = 0
  const answer = await post(hub, bytes, () => {
    held = memoryInUse() - before
  })
  expect(answer.status).toBe(201)
  expect(held).toBeLessThan(20 * bytes)
})

test('a report in chunks of one byte takes about its own length of memory, too', async () => {
  const bytes = 50_000
  const request = new PassThrough()
  const read = readJson(request as unknown as IncomingMessage, 2 * bytes)
  const before = memoryInUse()
  request.write('"')
  for (let sent = 0; sent < bytes; sent += 1) request.write('x')
  await expect.poll(() => request.readableLength).toBe(0)
  expect(memoryInUse() - before).toBeLessThan(20 * bytes)
  request.end('"')
  expect(await read).toHaveLength(bytes)
})

test('a body that waits for its next chunk is answered at once when the hub needs its memory', async () => {
  const hub = await createHub({ log: memoryLog(), limits: { maxIncomingBytes: 1000 } })
  onTestFinished(() => hub.close())
  // The second body needs the memory, and the rest of the first body never comes.
  const first = fetchHandler(hub)(request(new ReadableStream({ start: (body) => body.enqueue(Buffer.alloc(900)) })))
  await expect.poll(() => hub.port.memory.bodies.bytes).toBe(900)
  const second = await fetchHandler(hub)(request(new Blob([Buffer.alloc(900)]).stream()))
  expect(second.status).toBe(201)
  expect((await first).status).toBe(503)
})

/** Publishes a body in chunks of one byte. `atEnd` is called when the hub holds all of it. */
function post(hub: Awaited<ReturnType<typeof createHub>>, bytes: number, atEnd: () => void): Promise<Response> {
  let sent = 0
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (sent === bytes) {
        atEnd()
        controller.close()
      } else controller.enqueue(new Uint8Array([120]))
      sent += 1
    },
  })
  return fetchHandler(hub)(request(body))
}

function request(body: ReadableStream): Request {
  const init = { method: 'POST', body, duplex: 'half' }
  return new Request('http://hub/publish/a', init as RequestInit)
}

function memoryInUse(): number {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
