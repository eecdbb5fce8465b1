import { createVirtualEnvironment, type VirtualEnvironment } from '@rejoin/hub/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createMdnsHub } from '../src/mdns-hub.ts'
import { eventsOf, has, hasEvents, stage } from './support/stage.ts'

const uuidv7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

test('an event has a UUIDv7, in its data too, and describes its service; the event of a removed service only names it', async () => {
  const { read, announce, time } = await stage()
  const reader = await read()
  await reader.until(has('hello'))
  announce()
  await reader.until(hasEvents(1))
  announce({ ttl: 0 })
  await time.advance(500)
  await reader.until(hasEvents(2))
  const [resolved, removed] = eventsOf(reader)
  expect(resolved).toEqual({
    id: expect.stringMatching(uuidv7),
    at: expect.any(Number),
    type: 'resolved',
    data: {
      id: resolved?.id,
      type: '_http._tcp.local.',
      name: 'My NAS',
      host: 'nas.local.',
      port: 80,
      ip: '10.0.0.7',
      addresses: ['10.0.0.7'],
      txt: { path: '/' },
    },
  })
  expect(removed).toEqual({
    id: expect.stringMatching(uuidv7),
    at: expect.any(Number),
    type: 'removed',
    data: { id: removed?.id, type: '_http._tcp.local.', name: 'My NAS' },
  })
  expect(reader.text).toContain(`id: ${resolved?.id}\nevent: resolved\ndata: {"id":"${resolved?.id}"`)
})

test('five readers see the same ids, whenever they came', async () => {
  const { read, announce } = await stage()
  const early = await Promise.all([read(), read(), read()])
  await Promise.all(early.map((reader) => reader.until(has('hello'))))
  announce({ name: 'one' })
  announce({ name: 'two' })
  await Promise.all(early.map((reader) => reader.until(hasEvents(2))))
  const readers = [...early, await read(), await read('type=http&idle_for=0')]
  announce({ name: 'three' })
  await Promise.all(readers.map((reader) => reader.until(hasEvents(3))))
  const ids = readers.map((reader) => eventsOf(reader).map(({ id, data }) => [id, data.id, data.name]))
  expect(new Set(ids.map((each) => JSON.stringify(each))).size).toBe(1)
  expect(ids[0]?.map(([, , name]) => name)).toEqual(['one', 'two', 'three'])
})

test('a record that is announced a hundred times is one event', async () => {
  const { read, announce } = await stage()
  const reader = await read()
  await reader.until(has('hello'))
  for (let n = 0; n < 100; n += 1) announce()
  announce({ name: 'last' })
  await reader.until((each) => eventsOf(each).some(({ data }) => data.name === 'last'))
  expect(eventsOf(reader)).toHaveLength(2)
})

test('two hundred services at once are two hundred events, each once', async () => {
  const { read, announce } = await stage()
  const reader = await read()
  await reader.until(has('hello'))
  for (let n = 0; n < 200; n += 1) announce({ name: `nas ${n}`, host: `nas-${n}.local` })
  await reader.until(hasEvents(200))
  const names = eventsOf(reader).map(({ data }) => data.name)
  expect(names).toEqual(Array.from({ length: 200 }, (_, n) => `nas ${n}`))
})

describe('a reader that comes late', () => {
  test('gets the services that are there, as they are now, and then a cursor for what follows', async () => {
    const { read, announce, time } = await stage()
    const first = await read()
    await first.until(has('hello'))
    announce({ name: 'one' })
    announce({ name: 'gone', host: 'gone.local' })
    announce({ name: 'two' })
    announce({ name: 'one', port: 81 })
    announce({ name: 'gone', host: 'gone.local', ttl: 0 })
    await time.advance(500)
    await first.until(hasEvents(5))
    const late = await read()
    await late.until(has('checkpoint'))
    expect(late.frames.map(({ type }) => type)).toEqual(['hello', 'resolved', 'resolved', 'checkpoint'])
    expect(eventsOf(late).map(({ data }) => [data.name, data.port])).toEqual([
      ['two', 80],
      ['one', 81],
    ])
    expect(eventsOf(late).map(({ id }) => id)).toEqual([eventsOf(first)[2]?.id, eventsOf(first)[3]?.id])
    const next = await read('type=http&idle_for=0', late.frames.at(-1)?.id)
    announce({ name: 'three' })
    await next.until(hasEvents(1))
    expect(eventsOf(next).map(({ data }) => data.name)).toEqual(['three'])
  })

  test('and is cut right after hello has no cursor yet, so it gets the services when it is back', async () => {
    const { read, announce } = await stage()
    const first = await read()
    await first.until(has('hello'))
    announce()
    await first.until(hasEvents(1))
    const late = await read()
    await late.until(has('checkpoint'))
    expect(late.frames[0]).toMatchObject({ type: 'hello', id: '', data: { resumed: false } })
    expect(late.text.match(/^id: .+$/m)?.[0]).toBe(`id: ${eventsOf(first)[0]?.id}`)
  })

  test('and is cut among the services resumes after the last one that it got, and gets the others', async () => {
    const { read, announce } = await stage()
    const first = await read()
    await first.until(has('hello'))
    for (const name of ['one', 'two', 'three']) announce({ name })
    await first.until(hasEvents(3))
    const back = await read('type=http&idle_for=0', eventsOf(first)[0]?.id)
    await back.until(hasEvents(2))
    expect(back.frames.map(({ type }) => type)).toEqual(['hello', 'resolved', 'resolved'])
    expect(eventsOf(back).map(({ data }) => data.name)).toEqual(['two', 'three'])
  })
})

describe('a reader that comes back with the last id it saw', () => {
  test('gets what it missed, once and in order, and goes on', async () => {
    const { read, announce, time } = await stage()
    const reader = await read()
    await reader.until(has('hello'))
    announce()
    await reader.until(hasEvents(1))
    reader.cut()
    announce({ port: 81 })
    announce({ ttl: 0, port: 81 })
    await time.advance(500)
    const back = await read('type=_http._tcp&idle_for=0', eventsOf(reader)[0]?.id)
    await back.until(hasEvents(2))
    announce()
    await back.until(hasEvents(3))
    expect(back.frames[0]?.data.resumed).toBe(true)
    expect(eventsOf(back).map(({ type, data }) => [type, data.port])).toEqual([
      ['resolved', 81],
      ['removed', undefined],
      ['resolved', 80],
    ])
  })

  test('and is out of the window is told so, and where to look', async () => {
    const { read, announce } = await stage({ window: { maxEvents: 2 } })
    const reader = await read()
    await reader.until(has('hello'))
    for (let port = 1; port <= 4; port += 1) announce({ port })
    await reader.until(hasEvents(4))
    const back = await read('type=_http._tcp&idle_for=0', eventsOf(reader)[0]?.id)
    await back.until(has('sync-required'))
    expect(back.frames[1]).toMatchObject({
      type: 'sync-required',
      data: { reason: 'expired', snapshotUrl: '/v1/mdns/browse?type=_http._tcp' },
    })
    expect(eventsOf(back)).toEqual([])
    const inside = await read('type=_http._tcp&idle_for=0', eventsOf(reader)[1]?.id)
    await inside.until(hasEvents(2))
    expect(eventsOf(inside).map(({ data }) => data.port)).toEqual([3, 4])
  })

  test('and whose event is older than the window keeps is told so', async () => {
    const hubTime = createVirtualEnvironment()
    const hub = await createMdnsHub({ environment: hubTime, window: { maxAgeMs: 60_000 } })
    onTestFinished(() => hub.close())
    const { read, announce, mdns } = await stage({ hub })
    const watch = await mdns.watch('http')
    announce()
    const [first] = await turning(hubTime, watch.services())
    announce({ port: 81 })
    await turning(hubTime, watch.services())
    const inTime = await read('type=http&idle_for=0', first?.id)
    await turning(hubTime, inTime.until(hasEvents(1)))
    expect(eventsOf(inTime).map(({ data }) => data.port)).toEqual([81])
    await hubTime.advance(61_000)
    const late = await read('type=http&idle_for=0', first?.id)
    await turning(hubTime, late.until(has('sync-required')))
    expect(late.frames[1]?.data).toMatchObject({ reason: 'expired', snapshotUrl: '/v1/mdns/browse?type=_http._tcp' })
  })

  test.each([
    ['an id that never was one', 'nonsense', 'unknown-id'],
    ['an id of another time of the program', '01a1e7b0-337b-7fc9-b074-237800000000', 'epoch'],
  ])('which is %s is told so, and where to look', async (_what, id, reason) => {
    const { read } = await stage()
    const back = await read('type=_http._tcp&idle_for=0', id)
    await back.until(has('sync-required'))
    expect(back.frames[1]?.data).toMatchObject({ reason, snapshotUrl: '/v1/mdns/browse?type=_http._tcp' })
  })

  test('while the type is still followed for it resumes; later it is told that nobody watched', async () => {
    const { read, announce, time, mdns } = await stage()
    const reader = await read()
    await reader.until(has('hello'))
    announce({ ttl: 4500 })
    await reader.until(hasEvents(1))
    const isLeft = () => mdns.status().browses[0]?.users === 0
    reader.cut()
    await expect.poll(isLeft).toBe(true)
    await time.advance(59_000)
    const back = await read('type=_http._tcp&idle_for=0', eventsOf(reader)[0]?.id)
    await back.until(has('hello'))
    expect(back.frames[0]?.data.resumed).toBe(true)
    back.cut()
    await expect.poll(isLeft).toBe(true)
    await time.advance(61_000)
    expect(mdns.status().browses).toEqual([])
    const late = await read('type=_http._tcp&idle_for=0', eventsOf(reader)[0]?.id)
    await late.until(has('sync-required'))
    expect(late.frames[1]?.data).toMatchObject({ reason: 'forced', snapshotUrl: '/v1/mdns/browse?type=_http._tcp' })
  })
})

describe('idle_for', () => {
  test.each([
    ['type=http', 5],
    ['type=http&idle_for=2', 2],
  ])('%s ends the stream after %i seconds without an event', async (query, seconds) => {
    const { read, announce, time } = await stage()
    const reader = await read(query)
    await reader.until(has('hello'))
    await time.advance(seconds * 1000 - 100)
    announce()
    await reader.until(hasEvents(1))
    await time.advance(seconds * 1000 - 100)
    expect(has('close')(reader)).toBe(false)
    await time.advance(200)
    await reader.ended
    expect(reader.frames.at(-1)).toMatchObject({ type: 'close', data: { reason: 'finished' } })
  })

  test.each(['0', '000'])('of %s keeps it open, with heartbeats', async (seconds) => {
    const { read, time } = await stage()
    const reader = await read(`type=http&idle_for=${seconds}`)
    await reader.until(has('hello'))
    await time.advance(60_000)
    await reader.until(({ text }) => text.includes(': hb'))
    expect(has('close')(reader)).toBe(false)
  })

  test.each([
    ['a comment', '', ': hb'],
    ['an event', '&heartbeat=event', 'event: heartbeat'],
  ])('brings one heartbeat in each interval, as %s (§4.7)', async (_, asked, beat) => {
    const hubTime = createVirtualEnvironment()
    const hub = await createMdnsHub({ environment: hubTime })
    onTestFinished(() => hub.close())
    const { read, time } = await stage({ hub })
    const reading = read(`type=http&idle_for=0${asked}`)
    const hello = reading.then((reader) => reader.until(has('hello')).then(() => reader))
    const reader = await turning(hubTime, hello)
    for (let second = 0; second < 100; second += 1) await Promise.all([hubTime.advance(1000), time.advance(1000)])
    await reader.until(({ text }) => text.split(beat).length > 4)
    expect(reader.text.match(/^(: hb|event: heartbeat)$/gm)).toEqual(Array(4).fill(beat))
  })

  test('does not count heartbeats as events', async () => {
    const { read, time } = await stage()
    const reader = await read('type=http&idle_for=60')
    await reader.until(has('hello'))
    await time.advance(61_000)
    await reader.ended
    expect(reader.text).toContain(': hb')
  })
})

test('all readers of a type share one browse, and another type has its own', async () => {
  const { read, mdns, network, time } = await stage()
  const readers = await Promise.all([read(), read('type=HTTP'), read('type=_ipp._tcp')])
  await Promise.all(readers.map((reader) => reader.until(has('hello'))))
  await time.advance(150)
  expect(network.asked.flatMap(({ questions }) => questions.map(({ name }) => name)).sort()).toEqual([
    '_http._tcp.local',
    '_ipp._tcp.local',
  ])
  expect(mdns.status().browses.map(({ type, users }) => [type, users])).toEqual([
    ['_http._tcp.local.', 2],
    ['_ipp._tcp.local.', 1],
  ])
})

test('a server that closes sends close to its readers', async () => {
  const { read, server } = await stage()
  const reader = await read()
  await reader.until(has('hello'))
  server.close()
  await reader.ended
  expect(reader.frames.at(-1)).toMatchObject({ type: 'close', data: { reason: 'drain' } })
})

/** Lets the turns of the hub end, which its virtual time decides. */
async function turning<Result>(hubTime: VirtualEnvironment, work: Promise<Result>): Promise<Result> {
  let isOver = false
  const over = work.finally(() => {
    isOver = true
  })
  while (!isOver) await hubTime.advance(1)
  return over
}
