import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createMdnsHub } from '../src/mdns-hub.ts'
import { eventsOf, has, hasEvents, stage } from './support/stage.ts'

/** A source that has said more than the buffers of a connection hold. */
async function talkative() {
  const hub = await createMdnsHub({ stallTimeoutMs: 1000 })
  onTestFinished(() => hub.close())
  const staged = await stage({ hub, maxServices: 8000 })
  const responses: ServerResponse[] = []
  staged.server.on('request', (_request, response) => void responses.push(response))
  const first = await staged.read()
  await first.until(has('hello'))
  const services = 800
  const txt = Array.from({ length: 80 }, (_, n) => `key${n}=${'\0'.repeat(100)}`)
  for (let n = 0; n < services; n += 1) staged.announce({ name: `nas ${n}`, ttl: 4500, txt })
  await first.until(hasEvents(services))
  return { ...staged, first, services, responses }
}

/** Asks for the events, and reads none of the answer. */
async function openSilently(url: string) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  socket.pause()
  socket.write('GET /v1/mdns/events?type=http&idle_for=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
  return socket
}

test('a reader that reads nothing costs little memory, and is given up after `stallTimeoutMs`', async () => {
  const { url, mdns, responses } = await talkative()
  const socket = await openSilently(url)
  await expect.poll(() => responses.at(-1)?.writableNeedDrain).toBe(true)
  expect(mdns.status().browses[0]?.users).toBe(2)
  expect(responses.at(-1)?.writableLength).toBeLessThan(1024 * 1024)
  await expect.poll(() => mdns.status().browses[0]?.users).toBe(1)
  expect(responses.at(-1)?.destroyed).toBe(true)
  socket.destroy()
})

test('a reader that comes late to a talkative network gets every service once, however long that is', async () => {
  const { read, first, services } = await talkative()
  const late = await read()
  await late.until(has('checkpoint'))
  expect(eventsOf(late)).toHaveLength(services)
  expect(eventsOf(late).map(({ id }) => id)).toEqual(eventsOf(first).map(({ id }) => id))
})
