import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import multicastDns, { type MulticastDNS } from 'multicast-dns'
import { expect, onTestFinished, test } from 'vitest'
import type { DnsRecord } from '../src/network.ts'
import { systemTiming } from '../src/timing.ts'
import { udpNetwork } from '../src/udp-network.ts'
import { type Announced, announcement } from './support/announcement.ts'
import { eventsOf, has, hasEvents, stage } from './support/stage.ts'

/** The real link, on loopback and a port that nobody else uses: nothing leaves this machine. */
async function onLoopback() {
  const port = await freePort()
  const responder = await openSocket(port)
  const staged = await stage({ network: udpNetwork({ interface: '127.0.0.1', port }), timing: systemTiming })
  return { ...staged, port, announce: (announced?: Announced) => send(responder, announcement(announced), port) }
}

test('a service that is announced, changed and withdrawn over UDP is told', async () => {
  const { read, announce } = await onLoopback()
  const reader = await read()
  await reader.until(has('hello'))
  await announce({ name: 'Printer 2.0', txt: ['path=/', Uint8Array.of(0x6b, 0x3d, 0xff)] })
  await reader.until(hasEvents(1))
  await announce({ name: 'Printer 2.0', port: 81 })
  await announce({ name: 'Printer 2.0', port: 81, ttl: 0 })
  await reader.until(hasEvents(3))
  expect(eventsOf(reader).map(({ type, data }) => [type, data.name, data.port])).toEqual([
    ['resolved', 'Printer 2.0', 80],
    ['resolved', 'Printer 2.0', 81],
    ['removed', 'Printer 2.0', undefined],
  ])
  expect(eventsOf(reader)[0]?.data.txt).toEqual({ k: '\ufffd', path: '/' })
})

test('an answer from another port than that of mDNS, and bytes that are no packet, are passed over', async () => {
  const { read, announce, port } = await onLoopback()
  const reader = await read()
  await reader.until(has('hello'))
  const stranger = await openSocket(await freePort())
  await send(stranger, announcement({ name: 'forged' }), port)
  const noise = createSocket('udp4').unref()
  for (const text of ['', 'x', '\0'.repeat(12), '\xff'.repeat(600)]) {
    await new Promise((sent) => noise.send(Buffer.from(text, 'latin1'), port, '127.0.0.1', sent))
  }
  noise.close()
  await announce({ name: 'true' })
  await reader.until(hasEvents(1))
  expect(eventsOf(reader).map(({ data }) => data.name)).toEqual(['true'])
})

test('a reader that is cut twenty times gets every fact once, in order', async () => {
  const { read, announce } = await onLoopback()
  const ports: number[] = []
  let reader = await read()
  await reader.until(has('hello'))
  for (let port = 1; port <= 100; port += 1) {
    await announce({ port })
    if (port % 5 > 0) continue
    reader.cut()
    ports.push(...eventsOf(reader).map(({ data }) => data.port))
    const cursor = reader.frames.at(-1)?.id
    reader = await read('type=_http._tcp&idle_for=0', cursor)
    await reader.until(({ frames }) => frames.length > 0)
    expect(reader.frames[0]).toMatchObject({ type: 'hello', id: cursor, data: { resumed: true } })
  }
  // The last fact may have come to the reader that was cut last.
  await reader.until((each) => ports.at(-1) === 100 || eventsOf(each).some(({ data }) => data.port === 100))
  ports.push(...eventsOf(reader).map(({ data }) => data.port))
  expect(ports).toEqual(Array.from({ length: 100 }, (_, n) => n + 1))
})

async function openSocket(port: number): Promise<MulticastDNS> {
  const socket = multicastDns({ bind: '0.0.0.0', interface: '127.0.0.1', port })
  onTestFinished(() => new Promise((closed) => socket.destroy(closed)))
  await once(socket, 'ready')
  return socket
}

function send(socket: MulticastDNS, records: readonly DnsRecord[], port: number): Promise<void> {
  const answers = records.map((record) => ({ ...record, class: 'IN' })) as Parameters<MulticastDNS['respond']>[0]
  return new Promise((resolve, reject) => {
    socket.respond(answers, { port, address: '224.0.0.251' }, (error) => (error ? reject(error) : resolve()))
  })
}

async function freePort(): Promise<number> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  socket.close()
  await once(socket, 'close')
  return port
}
