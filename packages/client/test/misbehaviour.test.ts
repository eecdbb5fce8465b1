import { gzipSync } from 'node:zlib'
import { describe, expect, test, vi } from 'vitest'
import { hello, message, type Visit } from './support/scripted-server.ts'
import { clock, moved, page, retried, server, start, stateOf, useStage } from './support/stage.ts'

useStage()

describe('a server, or what stands between, that', () => {
  test('cuts the stream in the middle of an id: the half id is never sent back (§6)', async () => {
    const { stream, events } = start()
    const first = await server.stream()
    first.send(...message('e1'))
    first.write('id: e2-and-mo')
    await events.until(1)
    first.cut()
    await retried(stream)
    expect((await server.visit()).headers['last-event-id']).toBe('e1')
  })

  test('cuts between the id and its blank line: the event is asked for again (§6)', async () => {
    const { stream, events } = start()
    const first = await server.stream()
    first.send(...message('e1'))
    first.write('id: e2\ndata: 2\n')
    await events.until(1)
    first.end()
    await retried(stream)
    expect((await server.visit()).headers['last-event-id']).toBe('e1')
    expect(events.data()).toEqual(['e1'])
  })

  test('ends its lines in CRLF, and splits one across two packets', async () => {
    const { events } = start()
    const visit = await server.stream()
    await apart(visit, 'id: e1\r\ndata: 1\r', '\n\r', '\nid: e2\r\ndata: 2\r\n\r\n')
    expect(await events.until(2)).toEqual([1, 2])
    expect(events.all.map(({ id }) => id)).toEqual(['e1', 'e2'])
  })

  test('ends its lines in CR: an event is not held back until the next', async () => {
    const { events } = start()
    ;(await server.stream()).write('id: e1\rdata: 1\r\r')
    expect(await events.until(1)).toEqual([1])
  })

  test('starts with a BOM: it is dropped, and only that one', async () => {
    const { stream, events } = start({ parse: 'text' })
    const first = await server.heldBack()
    first.write('\uFEFFdata: \uFEFF1\n\n')
    expect(await events.until(1)).toEqual(['\uFEFF1'])
    first.cut()
    await retried(stream)
    ;(await server.heldBack()).write('\uFEFFdata: 2\n\n')
    expect(await events.until(2)).toEqual(['\uFEFF1', '2'])
  })

  test('puts a NUL into an id: the id is ignored and the event is not', async () => {
    const { stream, events } = start()
    const visit = await server.stream()
    visit.send(...message('e1'))
    visit.send('id: e\0', 'data: 2')
    expect(await events.until(2)).toEqual(['e1', 2])
    expect(stream.cursor).toBe('e1')
  })

  test.each(['stream:42', 'two words', '"quoted"', '[{"topic":"a","offset":7}]', 'ñ', '🐙', 'x'.repeat(2000)])(
    'gives out the id %j, which no hub would: it is sent back as it came',
    async (id) => {
      const { stream, events } = start()
      const first = await server.stream()
      first.write(`${[...message('e1'), '', `id: ${id}`, 'data: 2'].join('\n')}\n\n`)
      await events.until(2)
      expect(stream.cursor).toBe(id)
      first.cut()
      await retried(stream)
      const second = await server.stream()
      expect(Buffer.from(second.headers['last-event-id'] as string, 'latin1').toString()).toBe(id)
      second.send(...message('e3'))
      await events.until(3)
    },
  )

  test.each(['tab\tted', 'bell\u0007'])(
    'gives out the id %j, which no header can carry: it is sent back in the query',
    async (id) => {
      const { stream, events } = start()
      const first = await server.stream()
      first.send(`id: ${id}`, 'data: 1')
      await events.until(1)
      first.cut()
      await retried(stream)
      const { url, headers } = await server.visit()
      expect(url.searchParams.get('lastEventId')).toBe(id)
      expect(headers['last-event-id']).toBeUndefined()
    },
  )

  test('gives out an id that is too long to be sent back: the stream comes back from the one before it', async () => {
    const { stream, events } = start()
    const first = await server.stream()
    first.send(...message('e1'))
    first.send(`id: ${'x'.repeat(8001)}`, 'data: 2')
    await events.until(2)
    first.cut()
    await retried(stream)
    expect((await server.visit()).headers['last-event-id']).toBe('e1')
  })

  test('asks for a wait of a thousand years: it is asked again after ten minutes', async () => {
    const { stream } = start()
    const first = await server.stream()
    first.send('retry: 31536000000000', ...hello({}, 'e0'))
    await moved(stream, 'e0')
    first.cut()
    const { nextRetryAt } = await stateOf(stream, 'backoff')
    expect(nextRetryAt! - clock.now()).toBe(600_100)
  })

  test.each(['1000x', '-1', '1.5', '', '1e3'])('sends retry: %s, which is no number: it is ignored', async (retry) => {
    const { stream } = start()
    const first = await server.stream()
    first.send(`retry: ${retry}`, ...hello({}, 'e0'))
    await moved(stream, 'e0')
    first.cut()
    const { nextRetryAt } = await stateOf(stream, 'backoff')
    expect(nextRetryAt! - clock.now()).toBe(750)
  })

  test('says 200 and drops, again and again: it is asked less and less often', async () => {
    const { stream } = start({ transports: ['fetch'] })
    const waits: number[] = []
    for (let attempt = 0; attempt < 6; attempt++) {
      const visit = await server.stream()
      await stateOf(stream, 'connected')
      visit.cut()
      const { nextRetryAt } = await stateOf(stream, 'backoff')
      waits.push(nextRetryAt! - clock.now())
      clock.advance(nextRetryAt! - clock.now())
    }
    expect(waits).toEqual([750, 1000, 1500, 2500, 4500, 8500])
  })

  test('says 503 and when to come back, as a date', async () => {
    const { stream } = start()
    const dateIn = (ms: number) => new Date(clock.now() + ms).toUTCString()
    // The server's clock is an hour ahead.
    ;(await server.visit()).answer(503, { date: dateIn(3_600_000), 'retry-after': dateIn(3_609_000) })
    const { nextRetryAt } = await stateOf(stream, 'backoff')
    expect(nextRetryAt! - clock.now()).toBe(9250)
  })

  test('compresses the stream', async () => {
    const { stream, events } = start()
    const visit = await server.visit()
    visit.answer(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
    visit.write(gzipSync(`${[...message('e1'), '', ...message('e2')].join('\n')}\n\n`))
    visit.end()
    expect(await events.until(2)).toEqual(['e1', 'e2'])
    expect(stream.cursor).toBe('e2')
  })

  test('sends one byte at a time, also in the middle of a character', async () => {
    const { events } = start()
    const visit = await server.stream()
    const bytes = Buffer.from(`${message('e1', 'žluťoučký 🐙').join('\n')}\n\n`)
    await apart(visit, ...Array.from(bytes, (byte) => Uint8Array.of(byte)))
    expect(await events.until(1)).toEqual(['žluťoučký 🐙'])
  })

  test('sends bytes that are no UTF-8: they are shown as such, and the next event is whole', async () => {
    const { events } = start({ parse: 'text' })
    const visit = await server.stream()
    visit.write(Buffer.from([...Buffer.from('data: a'), 0xff, ...Buffer.from('b\n\ndata: c\n\n')]))
    expect(await events.until(2)).toEqual(['a\uFFFDb', 'c'])
  })

  test.each(['text/event-stream; charset=iso-8859-1', 'TEXT/Event-Stream', 'text/event-stream ; x=y'])(
    'calls its stream %s: it is read as UTF-8 all the same',
    async (type) => {
      const { events } = start()
      const visit = await server.visit()
      visit.answer(200, { 'content-type': type })
      visit.send(...message('e1', 'é'))
      expect(await events.until(1)).toEqual(['é'])
    },
  )

  test.each(['text/event-streams', 'application/json'])(
    'calls its stream %j: that is no stream, and is not asked for again',
    async (type) => {
      const { stream } = start()
      ;(await server.visit()).answer(200, { 'content-type': type })
      expect(await stateOf(stream, 'closed')).toMatchObject({ closeReason: 'wrong-content-type' })
    },
  )

  test.each(['text/event-strea', 'text/', ''])(
    'is cut off at %j of its type, which Chromium takes for the whole head: it is asked again',
    async (type) => {
      const { stream, events } = start()
      const visit = await server.visit()
      visit.answer(200, type ? { 'content-type': type } : {})
      visit.cut()
      await retried(stream)
      ;(await server.stream()).send(...message('e1'))
      expect(await events.until(1)).toEqual(['e1'])
    },
  )

  test('says 200 without a type, and goes on: that is no stream, and is not asked for again', async () => {
    const { stream } = start()
    const visit = await server.visit()
    visit.answer(200)
    visit.write('data: 1\n\n')
    expect(await stateOf(stream, 'closed')).toMatchObject({ closeReason: 'wrong-content-type' })
  })

  test.each(['text/event-stream, text/event-stream', 'text/html, text/event-stream', 'Text/Event-Stream ; x=1'])(
    'calls its stream %j: it is read, as by a browser',
    async (type) => {
      const { events } = start()
      const visit = await server.visit()
      visit.answer(200, { 'content-type': type })
      visit.send(...message('e1'))
      expect(await events.until(1)).toEqual(['e1'])
    },
  )

  test('sends empty data, and data of empty lines: both are events', async () => {
    const { events } = start({ parse: 'text' })
    const visit = await server.stream()
    visit.send('data')
    visit.send('data', 'data')
    visit.send('data:')
    expect(await events.until(3)).toEqual(['', '\n', ''])
  })

  test('sends comments for ever and nothing else: it is alive, and not good', async () => {
    const { stream } = start()
    const visit = await server.stream()
    await stateOf(stream, 'connected')
    for (let beat = 0; beat < 5; beat++) {
      visit.send(': hb')
      visit.send(`id: p${beat}`)
      await moved(stream, `p${beat}`)
      clock.advance(20_000)
    }
    expect(stream.state).toMatchObject({ state: 'connected', lastEventAt: null })
    expect(server.visits()).toBe(1)
  })

  test('sends an event twice: the second goes to onDuplicate, and to no other handler', async () => {
    const { stream, events } = start()
    const again: unknown[] = []
    stream.onDuplicate((event) => again.push(event))
    const visit = await server.stream()
    visit.send(...hello({}, 'e0'))
    for (const id of ['e1', 'e1', 'e2']) visit.send(...message(id))
    expect(await events.until(2)).toEqual(['e1', 'e2'])
    expect(again).toEqual([{ id: 'e1', type: 'message', data: '"e1"' }])
  })

  test('is no hub and numbers its events from the start after a restart: none is taken for one that was there before', async () => {
    const { stream, events } = start()
    const again: unknown[] = []
    stream.onDuplicate((event) => again.push(event))
    for (let run = 0; run < 3; run++) {
      const visit = await server.stream()
      for (let n = 1; n <= 35; n++) visit.send(...message(`${n}`, `${run}-${n}`))
      await events.until(35 * (run + 1))
      visit.cut()
      await retried(stream)
    }
    expect(new Set(events.data()).size).toBe(105)
    expect(again).toEqual([])
  })

  test('is no hub and resumes with the event that was seen last: that one is not delivered again', async () => {
    const { stream, events } = start()
    const again: string[] = []
    stream.onDuplicate(({ id }) => again.push(id))
    const first = await server.stream()
    for (const id of ['1', '2', '3']) first.send(...message(id))
    await events.until(3)
    first.cut()
    await retried(stream)
    const second = await server.stream()
    for (const id of ['3', '4', '3']) second.send(...message(id))
    expect(await events.until(5)).toEqual(['1', '2', '3', '4', '3'])
    expect(again).toEqual(['3'])
  })

  test('asks for a reload without end: a few are made, and then they are kept apart', async () => {
    const { stream } = start({ from: 'e1' })
    let reloads = 0
    stream.onSync(() => reloads++)
    const visit = await server.stream()
    visit.send(...hello({ requested: 'e1' }))
    for (let gap = 0; gap < 20; gap++) visit.send(`id: g${gap}`, 'event: sync-required', 'data: {"reason":"expired"}')
    const { nextRetryAt } = await stateOf(stream, 'backoff')
    expect(reloads).toBe(5)
    expect(stream.cursor).toBe('g4')
    expect(nextRetryAt! - clock.now()).toBeGreaterThanOrEqual(30_000)
  })
})

describe('a hub that ends a stream on purpose (§4.10)', () => {
  test('and is finished, is not asked again', async () => {
    const { stream, events } = start()
    const visit = await server.stream()
    visit.send(...hello())
    visit.send(...message('e1'))
    visit.send('event: close', 'data: {"reason":"finished"}')
    expect(await stateOf(stream, 'closed')).toMatchObject({ closeReason: 'finished', cursor: 'e1' })
    expect(events.data()).toEqual(['e1'])
    await visit.gone
  })

  test('for a while, is asked again when it says, with the same cursor', async () => {
    const { stream, events } = start()
    const visit = await server.stream()
    visit.send(...hello())
    visit.send(...message('e1'))
    await events.until(1)
    visit.send('retry: 7000', 'event: close', 'data: {"reason":"maintenance"}')
    const { nextRetryAt, closeReason } = await stateOf(stream, 'backoff')
    expect(closeReason).toBe('maintenance')
    expect(nextRetryAt! - clock.now()).toBe(7100)
    await visit.gone
    await retried(stream)
    expect((await server.visit()).headers['last-event-id']).toBe('e1')
  })

  test('and sends more after it, is not listened to', async () => {
    const { stream, events } = start()
    const visit = await server.stream()
    visit.write(`${['event: close', 'data: {"reason":"drain"}', '', ...message('late')].join('\n')}\n\n`)
    await stateOf(stream, 'backoff')
    expect(events.data()).toEqual([])
    expect(stream.cursor).toBeNull()
  })
})

describe('a page', () => {
  test('that is hidden keeps its healthy stream', async () => {
    const { window, document } = page()
    const { stream } = start()
    await server.stream()
    await stateOf(stream, 'connected')
    document.visibilityState = 'hidden'
    window.dispatchEvent(new Event('visibilitychange'))
    expect(stream.state.state).toBe('connected')
  })

  test('that wants to pause while it is hidden lets go, and catches up when it is seen', async () => {
    const { window, document } = page()
    const { stream, events } = start({ pauseWhenHidden: true })
    const first = await server.stream()
    first.send(...message('e1'))
    await events.until(1)
    document.visibilityState = 'hidden'
    window.dispatchEvent(new Event('visibilitychange'))
    await first.gone
    expect(stream.state).toMatchObject({ state: 'backoff', nextRetryAt: null })
    expect(clock.timers()).toEqual([])
    document.visibilityState = 'visible'
    window.dispatchEvent(new Event('visibilitychange'))
    expect((await server.visit()).headers['last-event-id']).toBe('e1')
  })

  test('that is opened in the background and wants to pause there waits until it is seen', async () => {
    const { window, document } = page('hidden')
    const { stream } = start({ pauseWhenHidden: true })
    expect(stream.state.state).toBe('backoff')
    document.visibilityState = 'visible'
    window.dispatchEvent(new Event('visibilitychange'))
    await server.visit()
  })

  test.each(['visible', 'hidden'])(
    'that is kept for the back button lets go of its stream, and is live when it comes back, %s',
    async (visibility) => {
      const { window, document } = page()
      const { stream, events } = start()
      const first = await server.stream()
      first.send(...message('e1'))
      await events.until(1)
      window.dispatchEvent(transition('pagehide', true))
      await first.gone
      expect(stream.state).toMatchObject({ state: 'backoff', nextRetryAt: null, stale: true })
      expect(clock.timers()).toEqual([])
      document.visibilityState = visibility
      window.dispatchEvent(transition('pageshow', true))
      expect((await server.visit()).headers['last-event-id']).toBe('e1')
    },
  )

  test('that is kept for the back button and pauses while hidden stays disconnected until it is seen', async () => {
    const { window, document } = page()
    const { stream } = start({ pauseWhenHidden: true })
    await server.stream()
    window.dispatchEvent(transition('pagehide', true))
    document.visibilityState = 'hidden'
    window.dispatchEvent(transition('pageshow', true))
    expect(stream.state).toMatchObject({ state: 'backoff', nextRetryAt: null })
  })

  test('that is left for good, or stays because its user decided so, keeps its stream until it ends', async () => {
    const { window } = page()
    const { stream } = start()
    await server.stream()
    await stateOf(stream, 'connected')
    window.dispatchEvent(transition('pagehide', false))
    expect(stream.state.state).toBe('connected')
  })

  test('that was frozen in the background does not trust the connection it had', async () => {
    const { window } = page('hidden')
    const { stream } = start()
    const first = await server.stream()
    first.send(...hello({ heartbeatMs: 25_000 }, 'e1'))
    await moved(stream, 'e1')
    window.dispatchEvent(new Event('resume'))
    expect((await server.visit()).headers['last-event-id']).toBe('e1')
  })

  test('that was frozen for longer than its connection lives connects anew when it thaws', async () => {
    const { window } = page()
    const { stream } = start()
    const first = await server.stream()
    first.send(...hello({ heartbeatMs: 1000 }, 'e1'))
    await moved(stream, 'e1')
    clock.freeze(3_600_000)
    window.dispatchEvent(new Event('resume'))
    expect(stream.state.state).toBe('connecting')
    expect((await server.visit()).headers['last-event-id']).toBe('e1')
  })
})

test('a reader that wants everything starts with the oldest event (§3.4)', async () => {
  const { stream, events } = start({ from: 'earliest' })
  const first = await server.stream()
  expect(first.headers['last-event-id']).toBe('earliest')
  first.send(...hello({ requested: 'earliest' }, 'e0'))
  first.send(...message('e1'))
  await events.until(1)
  first.cut()
  await retried(stream)
  expect((await server.visit()).headers['last-event-id']).toBe('e1')
})

test('the module touches nothing of the platform before it is used, so that a server can render with it', async () => {
  vi.resetModules()
  const names = ['fetch', 'document', 'location', 'addEventListener', 'EventSource', 'sessionStorage', 'Headers']
  for (const name of [...names, 'AbortController', 'TextDecoder']) vi.stubGlobal(name, undefined)
  const module = await import('../src/index.ts')
  vi.unstubAllGlobals()
  expect(Object.keys(module)).toEqual(['RejoinError', 'connect'])
})

function transition(type: 'pagehide' | 'pageshow', persisted: boolean): Event {
  return Object.assign(new Event(type), { persisted })
}

/** Sends each piece in a packet of its own. */
async function apart(visit: Visit, ...pieces: (string | Uint8Array)[]): Promise<void> {
  for (const piece of pieces) {
    visit.write(piece)
    await new Promise((resolve) => setImmediate(resolve))
  }
}
