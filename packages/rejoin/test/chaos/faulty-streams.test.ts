import { once } from 'node:events'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub } from '@rejoin/hub'
import type { FaultyNetwork, RevocableRights } from '@rejoin/hub/internal'
import { memoryLog } from '@rejoin/hub/memory'
import { expect, onTestFinished, test, vi } from 'vitest'
import { faultyStreams } from '../../src/chaos/faulty-streams.ts'

test('the stream of a reader that leaves while its connection is full is let go', async () => {
  const hub = await createHub({ log: memoryLog() })
  onTestFinished(() => hub.close())
  const cancel = vi.fn()
  let pulls = 0
  const body = () =>
    new ReadableStream({
      pull(controller) {
        pulls += 1
        controller.enqueue(new Uint8Array(1024 * 1024))
      },
      cancel,
    })
  const network = { carry: async () => new Response(body()) } as unknown as FaultyNetwork
  const options = { trustProxy: false, sinkBudgetBytes: 1024 * 1024 }
  const server = createServer(faultyStreams(hub, { network, rights: {} as RevocableRights }, options, () => undefined))
  onTestFinished(() => void server.close())
  await once(server.listen(0), 'listening')

  const request = get(`http://127.0.0.1:${(server.address() as AddressInfo).port}/events/orders`)
  const [response] = await once(request, 'response')
  onTestFinished(() => void request.destroy())
  // Nobody reads, so the connection is full when the body is pulled no more.
  await vi.waitUntil(async () => {
    const before = pulls
    await new Promise((resolve) => setTimeout(resolve, 50))
    return pulls > 0 && pulls === before
  })
  response.destroy()
  await expect.poll(() => cancel.mock.calls.length).toBe(1)
})
