import { createHub } from '@rejoin/hub'
import { fetchHandler } from '@rejoin/hub/fetch'
import { memoryLog } from '@rejoin/hub/memory'
import { expect, onTestFinished, test } from 'vitest'
import { connect, type TransportName } from '../src/index.ts'
// Here already: its code is loaded in real time, which does not count in this test.
import '../src/transports/fallbacks.ts'
import { type FakeClock, fakeClock } from './support/fake-clock.ts'

const count = 800
const data = 'x'.repeat(2000)

test('over 20 KB/s, long polls bring 800 events of 2 KB in at most 1.5 times the time of a stream', async () => {
  const hub = await createHub({ log: memoryLog(), heartbeatMs: 5000 })
  onTestFinished(() => hub.close())
  const handle = fetchHandler(hub)
  const { id } = await hub.publish('a', { data: 'first' })
  for (let n = 0; n < count; n++) await hub.publish('a', { data: `${n} ${data}` })

  const took = { fetch: await secondsBy('fetch'), 'long-poll': await secondsBy('long-poll') }
  console.log(`800 events of 2 KB at 20 KB/s: ${took.fetch} s as a stream, ${took['long-poll']} s as long polls`)
  expect(took.fetch).toBeLessThan(100)
  expect(took['long-poll']).toBeLessThanOrEqual(1.5 * took.fetch)

  async function secondsBy(transport: TransportName): Promise<number> {
    const clock = fakeClock()
    const startedAt = clock.now()
    const got: string[] = []
    let requests = 0
    const stream = connect('http://hub/events/a', {
      from: id,
      transports: [transport],
      clock,
      async fetch(input, init) {
        requests++
        return slowed(await handle(new Request(input as URL, init)), 20_000, clock)
      },
    })
    onTestFinished(() => stream.close())
    stream.on('message', ({ data }) => got.push(String(data)))
    for (let step = 0; got.length < count && step < 4000; step++) {
      clock.advance(50)
      // Bytes pass from one stream to the next in turns of their own.
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(got.map((text) => Number(text.split(' ')[0]))).toEqual(Array.from({ length: count }, (_, n) => n))
    // Nothing was fetched twice.
    expect(requests).toBeLessThanOrEqual(transport === 'fetch' ? 1 : 4)
    return (clock.now() - startedAt) / 1000
  }
})

/** The same response through a connection that carries so many bytes in a second of the clock. */
function slowed(response: Response, bytesPerSecond: number, clock: FakeClock): Response {
  const reader = response.body!.getReader()
  let rest = new Uint8Array()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      while (rest.length === 0) {
        const { done, value } = await reader.read()
        if (done) return controller.close()
        rest = value
      }
      const piece = rest.subarray(0, bytesPerSecond / 20)
      rest = rest.subarray(piece.length)
      await new Promise<void>((resolve) => clock.setTimeout(resolve, (piece.length / bytesPerSecond) * 1000))
      controller.enqueue(piece)
    },
    cancel: () => reader.cancel(),
  })
  return new Response(body, { status: response.status, headers: response.headers })
}
