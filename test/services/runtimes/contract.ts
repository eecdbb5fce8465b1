import { expect, onTestFinished, test } from 'vitest'
import { openStream } from '../../../packages/hub/test/support/http-server.ts'
import { largeData, largeEvents, numbersRead, openStalledReader } from '../../support/stalled-reader.ts'
import type { Runtime } from './process.ts'

/** A server of one runtime that is ready, with all of the hub at its root. */
export interface ServedRuntime extends Runtime {
  readonly port: number
}

/** What the fetch adapter promises wherever it runs, asked of the real runtime from outside. */
export function runtimeContract({ start: begin, tellsAddress }: RuntimeContract): void {
  async function start(hub: Record<string, unknown> = {}) {
    const runtime = await begin(hub)
    onTestFinished(() => runtime.close())
    const { port } = runtime
    const url = (path: string) => `http://127.0.0.1:${port}${path}`
    const publish = async (...numbers: number[]) => {
      const ids: string[] = []
      for (const n of numbers) {
        const response = await fetch(url('/publish/orders/1'), {
          method: 'POST',
          body: `${n}`,
          headers: { 'Content-Type': 'application/json' },
        })
        expect(response.status).toBe(201)
        ids.push(((await response.json()) as { id: string }).id)
      }
      return ids
    }
    return { ...runtime, url, publish, open: (path: string, headers = {}) => openStream(port, path, headers) }
  }

  test('greets at once, brings what is published, and goes on where it was cut', async () => {
    const { open, publish, saw } = await start()
    const first = await open('/events/orders/1')
    await first.waitFor((events) => events.length === 1)
    expect(first.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    })
    expect((await saw('connect')).ip).toBe(tellsAddress ? '127.0.0.1' : null)
    await publish(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    await first.waitFor((events) => events.length === 11)
    first.cut()
    const second = await open('/events/orders/1', { 'Last-Event-ID': first.events[5]?.id as string })
    await publish(11)
    await second.waitFor((events) => events.length === 7)
    expect(second.events[0]?.data).toContain('"resumed":true')
    expect(second.events.slice(1).map(({ data }) => data)).toEqual(['6', '7', '8', '9', '10', '11'])
    second.cut()
  })

  test('a reader that leaves is noticed, and its room is free again', async () => {
    const { open, saw } = await start({ limits: { maxConnections: 1 } })
    const first = await open('/events/orders/1')
    await first.waitFor((events) => events[0]?.type === 'hello')
    first.cut()
    expect(await saw('close')).toMatchObject({ reason: 'disconnected' })
    const second = await open('/events/orders/1')
    await second.waitFor((events) => events[0]?.type === 'hello')
    second.cut()
  })

  test('a reader that stops reading catches up from the log when it reads again, and misses nothing', async () => {
    const { port, url, saw } = await start({ stallTimeoutMs: 600_000 })
    const socket = openStalledReader(port, '/events/orders/1')
    await saw('connect')
    await publishLarge(url)
    expect(await numbersRead(socket)).toEqual(Array.from({ length: largeEvents }, (_, n) => n))
    socket.destroy()
  })

  test('a reader that never reads again is given up, with no more waiting than its budget and a turn', async () => {
    const { port, url, saw } = await start({ stallTimeoutMs: 1000 })
    const socket = openStalledReader(port, '/events/orders/1')
    await saw('connect')
    await publishLarge(url)
    expect((await saw('stall')).pending).toBeLessThan(192 * 1024)
    const cut = new Promise((resolve) => socket.once('close', resolve))
    socket.resume()
    await cut
  })

  test('polls: what was missed, and then what happens (§4.14)', async () => {
    const { url, publish } = await start()
    const [id] = await publish(1, 2)
    const poll = async (cursor: string) => (await fetch(url(`/events/orders/1?waitMs=25000&cursor=${cursor}`))).json()
    const missed = (await poll(id as string)) as Polled
    expect(messagesOf(missed)).toEqual(['2'])
    const waiting = poll(missed.cursor) as Promise<Polled>
    await publish(3)
    expect(messagesOf(await waiting)).toEqual(['3'])
  })
}

export interface RuntimeContract {
  /** With options for `createHub`. */
  start(hub: Record<string, unknown>): Promise<ServedRuntime>
  /** Whether the runtime tells a handler who asks. */
  readonly tellsAddress: boolean
}

interface Polled {
  readonly cursor: string
  readonly events: { type: string; data: string }[]
}

function messagesOf({ events }: Polled): string[] {
  return events.filter(({ type }) => type === 'message').map(({ data }) => data)
}

async function publishLarge(url: (path: string) => string): Promise<void> {
  for (let n = 0; n < largeEvents; n += 1) {
    const body = JSON.stringify(largeData(n))
    const response = await fetch(url('/publish/orders/1'), {
      method: 'POST',
      body,
      headers: { 'Content-Type': 'application/json' },
    })
    expect(response.status).toBe(201)
    await response.text()
  }
}
