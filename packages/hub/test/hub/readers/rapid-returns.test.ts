import { describe, expect, test } from 'vitest'
import type { Admitted } from '../../../src/hub/readers/subscribe-request.ts'
import { openHub, type Recorder, type TestHub } from '../../support/recorder.ts'

const reader = { ip: '192.0.2.1', userAgent: null, subject: null }
const retryMs = 2000

describe('a client that returns well before the time it was told', () => {
  test('is rejected with waits that grow, and is let in again when it waits (§4.12)', async () => {
    const { hub, environment, connect } = await openHub({ retryMs })
    const cursor = await cursorOf(hub)
    const visits: Recorder[] = []
    for (let visit = 0; visit < 16; visit += 1) {
      visits.push(connect('a', { cursor, reader, client: { id: 'tab', attempt: visit } }))
      await environment.advance(10)
      visits.at(-1)?.session.disconnected()
      await environment.advance(10)
    }
    const waits = visits.flatMap(waitOf)
    expect(visits.slice(0, 11).flatMap(waitOf)).toEqual([])
    expect(waits).toHaveLength(5)
    for (const [index, least] of [2000, 4000, 8000, 16_000, 32_000].entries()) {
      expect(waits[index]).toBeGreaterThanOrEqual(least)
      expect(waits[index]).toBeLessThanOrEqual(least * 1.2)
    }
    await environment.advance(waits.at(-1) as number)
    const returned = connect('a', { cursor, reader, client: { id: 'tab', attempt: 16 } })
    await environment.settle()
    expect(waitOf(returned)).toEqual([])
    expect(returned.events[0]?.type).toBe('hello')
  })

  test('is known by its client id, whatever its cursor and its address', async () => {
    const { hub, environment, connect } = await openHub({ retryMs })
    let last: Recorder | undefined
    for (let visit = 0; visit < 12; visit += 1) {
      const { id } = await hub.publish('a', { data: visit })
      const ip = `192.0.2.${visit}`
      last = connect('a', { cursor: id, reader: { ...reader, ip }, client: { id: 'tab', attempt: visit } })
      await environment.advance(10)
      last.session.disconnected()
    }
    expect(waitOf(last as Recorder)).toHaveLength(1)
    const other = connect('a', { reader, client: { id: 'another', attempt: 0 } })
    expect(waitOf(other)).toEqual([])
  })

  test('is rejected by a status where it can read one', async () => {
    const { hub, environment, connect } = await openHub({ retryMs })
    const cursor = await cursorOf(hub)
    const request = () => ({
      ...{ subscription: connect('a').session.subscription, reader, client: { id: 'tab', attempt: 0 } },
      start: { from: 'cursor' as const, cursor },
    })
    for (let visit = 0; visit < 11; visit += 1) {
      const admitted = await hub.port.admit(request(), { readsStatus: true })
      expect(admitted.kind).toBe('admitted')
      hub.port.subscribe(admitted as Admitted, quietSink()).disconnected()
      await environment.settle()
    }
    const verdict = await hub.port.admit(request(), { readsStatus: true })
    expect(verdict).toMatchObject({ kind: 'rejected', rejection: { reason: 'too-rapid' } })
  })

  test('is served later and later, by seconds at most, when it is known only by its cursor (§4.12)', async () => {
    const { hub, environment, connect } = await openHub({ retryMs: 500 })
    const cursor = await cursorOf(hub)
    const waits: number[] = []
    for (let visit = 0; visit < 16; visit += 1) {
      const since = environment.now()
      const visitor = connect('a', { cursor, reader })
      for (let waited = 0; waited < 40 && visitor.events.length === 0; waited += 1) await environment.advance(100)
      waits.push(environment.now() - since)
      visitor.session.disconnected()
    }
    expect(Math.max(...waits.slice(0, 11))).toBe(100)
    // Each further return doubles the wait; one is forgiven every two seconds.
    expect(waits.slice(11)).toEqual([500, 1000, 2000, 2000, 2000])
  })

  test('is let in as often as it likes where the limit is Infinity', async () => {
    const { hub, environment, connect } = await openHub({ retryMs, limits: { maxRapidReturns: Infinity } })
    const cursor = await cursorOf(hub)
    for (let visit = 0; visit < 50; visit += 1) {
      const visitor = connect('a', { cursor, reader })
      expect(waitOf(visitor)).toEqual([])
      visitor.session.disconnected()
      await environment.settle()
    }
  })
})

describe('a reader is not rejected for returning early', () => {
  test('when it reloads a page ten times in as many seconds', async () => {
    const { hub, environment, connect } = await openHub({ retryMs })
    const cursor = await cursorOf(hub)
    for (let reload = 0; reload < 10; reload += 1) {
      const page = connect('a', { cursor, reader })
      expect(waitOf(page)).toEqual([])
      await environment.advance(900)
      page.session.disconnected()
      await environment.advance(100)
    }
  })

  test('when it is one of two hundred readers behind one address, all with the same cursor, whose connections were cut', async () => {
    const { hub, environment, connect } = await openHub({ retryMs })
    const cursor = await cursorOf(hub)
    for (let cut = 0; cut < 5; cut += 1) {
      const office = Array.from({ length: 200 }, () => connect('a', { cursor, reader }))
      await environment.settle()
      expect(office.flatMap(waitOf)).toEqual([])
      for (const each of office) each.session.disconnected()
      await environment.advance(retryMs)
    }
  })

  test('when another reader behind the same address returns in a loop', async () => {
    const { hub, environment, connect } = await openHub({ retryMs })
    const cursor = await cursorOf(hub)
    const colleague = connect('a', { cursor, reader })
    for (let loop = 0; loop < 30; loop += 1) {
      connect('a', { cursor, reader }).session.disconnected()
      await environment.settle()
    }
    colleague.session.disconnected()
    await environment.advance(retryMs)
    expect(waitOf(connect('a', { cursor, reader }))).toEqual([])
  })

  test('when readers behind the same address return in a loop without end, with the same cursor, on any channel', async () => {
    const { hub, environment, connect } = await openHub({ retryMs })
    const cursor = await cursorOf(hub)
    const colleague = connect('a', { cursor, reader })
    const loop = async () => {
      connect('other', { cursor, reader }).session.disconnected()
      await environment.advance(10)
    }
    for (let round = 0; round < 300; round += 1) await loop()
    colleague.session.disconnected()
    for (let round = 0; round < 20; round += 1) await loop()
    const returned = connect('a', { cursor, reader })
    for (let round = 0; round < 310; round += 1) await loop()
    expect(waitOf(returned)).toEqual([])
    expect(returned.events[0]?.type).toBe('hello')
  })

  test('when its rights expired and it is back with new ones at once', async () => {
    const { environment, connect } = await openHub({ retryMs })
    for (let token = 0; token < 30; token += 1) {
      const rights = { grant: { subject: 'ada', subscribe: ['*'], expiresAt: environment.now() + 100 } }
      const one = connect('a', { rights, reader: { ...reader, subject: 'ada' }, client: { id: 'tab', attempt: token } })
      expect(waitOf(one)).toEqual([])
      await environment.advance(100)
    }
  })

  test('when it has no cursor or no address, and cannot be told from others', async () => {
    const { hub, environment, connect } = await openHub({ retryMs })
    const cursor = await cursorOf(hub)
    for (let visit = 0; visit < 30; visit += 1) {
      for (const one of [connect('a', { reader }), connect('a', { cursor })]) {
        expect(waitOf(one)).toEqual([])
        one.session.disconnected()
      }
      await environment.settle()
    }
  })
})

async function cursorOf(hub: TestHub['hub']): Promise<string> {
  const { id } = await hub.publish('a', { data: 0 })
  return id
}

/** For how long a reader was sent away, if it was. */
function waitOf({ text }: Recorder): number[] {
  if (!text.includes('{"reason":"overloaded"}')) return []
  return [Number(/retry: (\d+)\nevent: close/.exec(text)?.[1])]
}

function quietSink() {
  return { write: () => true, end: () => undefined, destroy: () => undefined, pending: 0 }
}
