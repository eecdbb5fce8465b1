import { createHub } from '@rejoin/hub'
import { fetchHandler } from '@rejoin/hub/fetch'
import { memoryLog } from '@rejoin/hub/memory'
import { expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../src/index.ts'

test.each(['fetch', 'long-poll'] as const)(
  'a start with the earliest events by %s takes one connection, and is no gap (§3.4, §4.4)',
  async (transport) => {
    const hub = await createHub({ log: memoryLog() })
    onTestFinished(() => hub.close())
    for (const data of [1, 2, 3]) await hub.publish('a', { data })
    const handle = fetchHandler(hub)
    const attempts = new Set<string | null>()
    const stream = connect('http://127.0.0.1/events/a', {
      from: 'earliest',
      transports: [transport],
      fetch: async (input, init) => {
        const request = new Request(input, init)
        attempts.add(new URL(request.url).searchParams.get('attempt'))
        return handle(request)
      },
    })
    const onSync = vi.fn()
    stream.onSync(onSync)
    const found: unknown[] = []
    for await (const { data } of stream) {
      found.push(data)
      if (found.length === 3) stream.close()
    }
    expect(found).toEqual([1, 2, 3])
    expect(onSync).not.toHaveBeenCalled()
    expect([...attempts]).toEqual(['1'])
  },
)
