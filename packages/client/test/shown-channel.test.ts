import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../src/index.ts'

test.each(['fetch', 'long-poll'] as const)(
  'an event read by %s says where it was published, when the URL asks for it (§4.15)',
  async (transport) => {
    const { hub, url } = await serve()
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    onTestFinished(() => warn.mockRestore())
    const shown = firstTwo(`${url}?channel=a&channel=b/c&show=channel`)
    const plain = firstTwo(`${url}?channel=a&channel=b/c`)
    await hub.publish('b/c', { data: 1 })
    await hub.publish('a', { data: 2 })
    expect(await shown).toEqual([
      [1, 'b/c'],
      [2, 'a'],
    ])
    expect(await plain).toEqual([
      [1, undefined],
      [2, undefined],
    ])
    expect(warn).not.toHaveBeenCalled()

    async function firstTwo(address: string) {
      const stream = connect(address, { from: 'earliest', transports: [transport] })
      const found: [unknown, string | undefined][] = []
      for await (const { data, channel } of stream) {
        found.push([data, channel])
        if (found.length === 2) stream.close()
      }
      return found
    }
  },
)

test('a channel shows on its own event and on no other', async () => {
  const body = 'channel: a\nid: 1\ndata: 1\n\nid: 2\ndata: 2\n\nchannel: b\n\nid: 3\ndata: 3\n\n'
  const stream = connect('http://hub/events', {
    fetch: async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
  })
  const channels: unknown[] = []
  for await (const { id, channel } of stream) {
    channels.push(channel)
    if (id === '3') stream.close()
  }
  expect(channels).toEqual(['a', undefined, undefined])
})

async function serve() {
  const hub = await createHub({ log: memoryLog() })
  const server = createServer(nodeHandler(hub))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await hub.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { hub, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/events` }
}
