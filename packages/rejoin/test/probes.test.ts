import { connect } from 'node:net'
import { memoryLog } from '@rejoin/hub/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createRoom, createSightings } from '../src/probes.ts'
import { cutOff, open, send, serving, until } from './support/http.ts'

const spaced = '/events/rejoin.doctor/spaced/0123456789abcdef'
const silent = '/events/rejoin.doctor/silent/0123456789abcdef'

describe('a probe', () => {
  test('needs no rights, where everything else needs some', async () => {
    const { url } = await serving({ access: { keys: [{ name: 'ada', sha256: 'a'.repeat(64), subscribe: ['*'] }] } })
    expect((await send(url, '/events/demo')).status).toBe(401)
    const stream = await open(url, spaced, { headers: { 'last-event-id': 'sent-1' } })
    expect(stream.statusCode).toBe(200)
    const [, hello = ''] = /^data: (.*)$/m.exec(await until(stream, '\n\n')) ?? []
    expect(JSON.parse(hello)).toMatchObject({ header: 'sent-1', query: null, heartbeatMs: 25_000 })
  })

  test('has the head of every other stream', async () => {
    const { url } = await serving()
    const [probe, stream] = await Promise.all([open(url, spaced), open(url, '/events/demo')])
    for (const name of ['content-type', 'cache-control', 'x-accel-buffering', 'vary'] as const) {
      expect(probe.headers[name]).toBe(stream.headers[name])
    }
  })

  test('says which cursors arrived, one by one', async () => {
    const { url } = await serving()
    const stream = await open(url, `${spaced}?lastEventId=in-query`, { headers: { 'last-event-id': 'in-header' } })
    expect(await until(stream, '\n\n')).toContain('"header":"in-header","query":"in-query"')
  })

  test('leaves nothing in the log, and is no reader of the hub', async () => {
    const log = memoryLog()
    const { url, hub } = await serving({ log })
    const { text } = await send(url, spaced)
    expect(text.match(/^event: tick$/gm)).toHaveLength(20)
    expect(text.match(/^: hb$/gm)).toHaveLength(5)
    expect(text).toMatch(/event: end\ndata: \{\}\n\n$/)
    expect([...hub.admin.connections()]).toEqual([])
    expect(await hub.admin.channels()).toEqual([])
  })

  test('can be asked afterwards whether the hub saw the end of it', async () => {
    const { url } = await serving()
    const seen = '/events/rejoin.doctor/seen/0123456789abcdef'
    expect(JSON.parse((await send(url, seen)).text)).toEqual({ state: 'unknown' })
    const stream = await open(url, silent)
    await until(stream, '\n\n')
    expect(JSON.parse((await send(url, seen)).text)).toEqual({ state: 'open' })
    stream.destroy()
    await expect.poll(async () => JSON.parse((await send(url, seen)).text).state).toBe('closed')
  })

  test.each([
    ['/events/rejoin.doctor/unknown/0123456789abcdef', 'GET', 404],
    ['/events/rejoin.doctor/spaced/no', 'GET', 404],
    [spaced, 'POST', 405],
  ])('%s by %s is rejected', async (path, method, status) => {
    const { url } = await serving()
    expect((await send(url, path, { method })).status).toBe(status)
  })

  test('is rejected under a foreign host, as every request is', async () => {
    const { url } = await serving()
    expect((await send(url, spaced, { headers: { host: 'evil.example' } })).status).toBe(403)
  })

  test('ends with the program', async () => {
    const server = await serving()
    const stream = await open(server.url, '/events/rejoin.doctor/beating/0123456789abcdef')
    await until(stream, '\n\n')
    stream.resume()
    await server.close()
    await expect.poll(() => stream.readableEnded || stream.destroyed).toBe(true)
  })
})

describe('probes make no load', () => {
  test('only so many are open at once, and the next is told to wait', async () => {
    const { url, hub } = await serving()
    const answers = await Promise.all(Array.from({ length: 20 }, () => open(url, silent)))
    const statuses = answers.map(({ statusCode }) => statusCode)
    expect(statuses.filter((status) => status === 200)).toHaveLength(16)
    const rejected = answers.find(({ statusCode }) => statusCode === 429)
    expect(Number(rejected?.headers['retry-after'])).toBeGreaterThan(0)
    // Readers are not concerned.
    await until(await open(url, '/events/demo'), 'hello')
    expect(hub.readers('demo')).toBe(1)
  })

  test('room is given back when a probe ends', async () => {
    const room = createRoom()
    const leaves = Array.from({ length: 16 }, () => room.enter('one'))
    expect(room.enter('one')).toBeUndefined()
    leaves[0]?.()
    leaves[0]?.()
    expect(room.enter('one')).toBeDefined()
    expect(room.enter('one')).toBeUndefined()
  })

  test('all networks together have a limit, too', () => {
    const room = createRoom()
    const entered = Array.from({ length: 100 }, (_, index) => room.enter(`network ${index}`))
    expect(entered.filter(Boolean)).toHaveLength(32)
  })

  test('a network that asks again and again has to wait, and others need not', () => {
    let now = 0
    const room = createRoom({ now: () => now })
    const waits = Array.from({ length: 61 }, () => room.ask('one'))
    expect(waits.slice(0, 60).every((wait) => wait === 0)).toBe(true)
    expect(waits.at(-1)).toBeGreaterThan(0)
    expect(room.ask('other')).toBe(0)
    now += 1000
    expect(room.ask('one')).toBe(0)
  })

  test('what is known of old probes is forgotten', () => {
    let now = 0
    const sightings = createSightings(() => now)
    for (let n = 0; n < 5000; n += 1) sightings.opened(`probe${n}`)
    expect(sightings.of('probe0')).toEqual({ state: 'unknown' })
    expect(sightings.of('probe4999')).toEqual({ state: 'open' })
    now += 300_000
    expect(sightings.of('probe4999')).toEqual({ state: 'unknown' })
  })

  test('one that is pipelined behind another is rejected, because nobody would tell when its reader leaves', async () => {
    const { url } = await serving()
    const { hostname, port, host } = new URL(url)
    const socket = connect(Number(port), hostname)
    onTestFinished(() => void socket.destroy())
    const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`
    let text = ''
    socket.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
    socket.write(request(spaced) + request(silent))
    await expect.poll(() => text).toContain('HTTP/1.1 429')
  })
})

test('a target that only looks like a probe is an ordinary channel', async () => {
  const { url } = await serving()
  await until(await open(url, '/events/rejoin.doctors'), 'hello')
})

test('a probe of a hub that has gone is an error of the connection', async () => {
  const server = await serving()
  await server.close()
  expect((await cutOff(server.url, spaced)).code).toBe('ECONNREFUSED')
})
