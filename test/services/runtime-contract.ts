import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { openStream } from '../../packages/hub/test/http-server.ts'
import { parse } from '../../packages/hub/test/recorder.ts'
import type { Runtime } from './runtime-process.ts'

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
        const response = await fetch(url('/publish/orders/1'), { method: 'POST', body: `${n}` })
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

  test('a reader that leaves is noticed, and its place is free', async () => {
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
    const socket = stalledReader(port)
    await saw('connect')
    await publishLarge(url)
    expect(await numbersRead(socket)).toEqual(Array.from({ length: largeEvents }, (_, n) => n))
    socket.destroy()
  })

  test('a reader that never reads again is given up, with no more waiting than its budget and a turn', async () => {
    const { port, url, saw } = await start({ stallTimeoutMs: 1000 })
    const socket = stalledReader(port)
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
    const poll = async (cursor: string) => (await fetch(url(`/poll/orders/1?cursor=${cursor}`))).json()
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

// Together more than any kernel buffers for one socket.
const largeEvents = 600
const filler = 'x'.repeat(32 * 1024)

async function publishLarge(url: (path: string) => string): Promise<void> {
  for (let n = 0; n < largeEvents; n += 1) {
    const body = JSON.stringify({ n, filler })
    const response = await fetch(url('/publish/orders/1'), { method: 'POST', body })
    expect(response.status).toBe(201)
    await response.text()
  }
}

/** Connected, and does not read. Without chunks, so that its bytes can be told apart. */
function stalledReader(port: number): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => socket.destroy())
  socket.write('GET /events/orders/1 HTTP/1.0\r\nHost: x\r\n\r\n')
  return socket.pause()
}

/** Reads until all events are there. */
function numbersRead(socket: Socket): Promise<number[]> {
  const numbers: number[] = []
  let text = ''
  return new Promise((resolve) => {
    socket.setEncoding('utf8').on('data', (part) => {
      text += part
      const end = text.lastIndexOf('\n\n') + 2
      for (const { type, data } of parse(text.slice(0, end)).events) {
        if (type === 'message') numbers.push(JSON.parse(data).n)
      }
      text = text.slice(end)
      if (numbers.length >= largeEvents) resolve(numbers)
    })
    socket.resume()
  })
}
