import type { HubOptions } from '@rejoin/hub'
import { createSubscription, type PollAnswer } from '@rejoin/hub/internal'
import { describe, expect, test } from 'vitest'
import { laggingLog } from '../../support/lagging-log.ts'
import { openHub } from '../../support/recorder.ts'

const subscription = createSubscription(['a'])
const reader = { ip: '192.0.2.1', userAgent: null, subject: null }
const from = (cursor: string | null) =>
  cursor === null ? { from: 'now' as const } : { from: 'cursor' as const, cursor }

/** A reader that polls a hub on virtual time, and what the hub tells of it. */
async function openPolls(options: Partial<HubOptions> = {}) {
  const { hub, environment } = await openHub(options)
  const told: string[] = []
  hub.on('connect', ({ resuming }) => told.push(resuming ? 'return' : 'connect'))
  hub.on('replay', ({ replayed }) => told.push(`replay ${replayed}`))
  hub.on('gap', ({ reason }) => told.push(`gap ${reason}`))
  hub.on('reject', ({ reason }) => told.push(`reject ${reason}`))
  hub.on('close', ({ reason, durationMs }) => told.push(`close ${reason} after ${durationMs}`))
  const poll = (cursor: string | null, waitMs = 25_000, signal?: AbortSignal) =>
    hub.port.poll({ subscription, start: from(cursor), reader }, { waitMs, ...(signal ? { signal } : {}) })
  return {
    hub,
    environment,
    told,
    poll,
    /** An answer that the hub has, without time passing. */
    async now(cursor: string | null, waitMs?: number) {
      const answer = poll(cursor, waitMs)
      await environment.settle()
      return (await answer) as PollAnswer
    },
  }
}

const types = ({ events }: PollAnswer) => events.map(({ type }) => type)

describe('a reader that polls', () => {
  test('is one connection to observers, from its first poll until it polls no more (§4.14)', async () => {
    const { hub, environment, told, now, poll } = await openPolls()
    let { cursor } = await now(null)
    const connections = new Set<string>()
    for (let n = 0; n < 20; n += 1) {
      const waiting = poll(cursor)
      await environment.advance(3000)
      await hub.publish('a', { data: n })
      await environment.settle()
      const answer = (await waiting) as PollAnswer
      connections.add(JSON.parse(answer.events[0]?.data ?? '').connection)
      cursor = answer.cursor
    }
    expect(told).toEqual(['connect'])
    expect(connections.size).toBe(1)
    await environment.advance(10_000)
    expect(told).toEqual(['connect', 'close disconnected after 70000'])
  })

  test('is announced as returning once, with what it had missed', async () => {
    const { hub, told, now, poll, environment } = await openPolls()
    const { id } = await hub.publish('a', { data: 1 })
    await hub.publish('a', { data: 2 })
    const { cursor } = await now(id, 0)
    const waiting = poll(cursor, 5000)
    await environment.advance(5000)
    await waiting
    expect(told).toEqual(['return', 'replay 1'])
  })

  test('is not rejected for polling often while there is something to read', async () => {
    const { hub, told, now } = await openPolls({ limits: { maxOpensPer10s: 3 } })
    let { cursor } = await now(null)
    for (let n = 0; n < 50; n += 1) {
      await hub.publish('a', { data: n })
      const answer = await now(cursor)
      expect(answer.events.map(({ data }) => data)).toContain(String(n))
      cursor = answer.cursor
    }
    expect(told).toEqual(['connect'])
  })

  test('is rejected when it polls with the same old cursor again and again', async () => {
    const { hub, poll, environment } = await openPolls({ limits: { maxOpensPer10s: 3 } })
    const { id } = await hub.publish('a', { data: 1 })
    await hub.publish('a', { data: 2 })
    const answers = [1, 2, 3, 4].map(() => poll(id))
    await environment.settle()
    expect((await Promise.all(answers)).map((answer) => 'reason' in answer)).toEqual([false, false, false, true])
  })

  test('is rejected when it polls without end and without waiting', async () => {
    const { now, told } = await openPolls({ limits: { maxOpensPer10s: 3 } })
    let { cursor } = await now(null)
    for (let n = 0; n < 10; n += 1) cursor = (await now(cursor, 0)).cursor ?? cursor
    expect(told).toContain('reject too-rapid')
  })

  test('keeps its room between two polls when the hub is full', async () => {
    const { now, hub, told } = await openPolls({ limits: { maxConnections: 1 } })
    const { cursor } = await now(null)
    const other = { reader: { ...reader, ip: '192.0.2.2' }, subscription, start: { from: 'now' as const } }
    expect(await hub.port.admit(other, { readsStatus: true })).toMatchObject({ kind: 'rejected' })
    await hub.publish('a', { data: 1 })
    expect(types(await now(cursor))).toEqual(['hello', 'message'])
    expect(told).toEqual(['connect', 'reject connections'])
  })

  test('that leaves while it waits is gone at once', async () => {
    const { now, poll, told, environment } = await openPolls()
    const { cursor } = await now(null)
    const leaving = new AbortController()
    const waiting = poll(cursor, 25_000, leaving.signal)
    await environment.settle()
    leaving.abort()
    await waiting
    expect(told).toEqual(['connect', 'close disconnected after 0'])
  })
})

describe('an answer', () => {
  test('is empty only when the hub has heard everything that the log holds', async () => {
    const log = laggingLog()
    const { hub, environment, now, poll } = await openPolls({ log: log.source })
    const { cursor } = await now(null)
    log.hold()
    void hub.publish('a', { data: 1 })
    await environment.settle()
    let answered = false
    const waiting = poll(cursor, 0).finally(() => {
      answered = true
    })
    await environment.settle()
    expect(answered).toBe(false)
    log.release()
    await environment.settle()
    expect(types((await waiting) as PollAnswer)).toContain('message')
  })

  test('brings close, and leaves the cursor as it is, when the log stays behind', async () => {
    const log = laggingLog()
    const { hub, environment, now, poll, told } = await openPolls({ log: log.source })
    const { cursor } = await now(null)
    log.hold()
    void hub.publish('a', { data: 1 })
    await environment.settle()
    const waiting = poll(cursor, 0)
    await environment.advance(10_000)
    const answer = (await waiting) as PollAnswer
    expect(types(answer)).toEqual(['hello', 'close'])
    expect(answer.cursor).toBe(cursor)
    expect(told.at(-1)).toMatch(/^close log-unavailable/)
  })

  test('moves the cursor over events of other channels, so that the next poll does not search them again (§4.9)', async () => {
    const { hub, environment, now, poll } = await openPolls()
    const { cursor } = await now(null)
    const waiting = poll(cursor, 5000)
    await environment.settle()
    const other = await hub.publish('b', { data: 1 })
    await environment.advance(5000)
    const answer = (await waiting) as PollAnswer
    expect(types(answer)).toEqual(['hello', 'checkpoint'])
    expect(answer.cursor).toBe(other.id)
  })

  test.each([
    ['of one byte', 'x'.repeat(200 * 1024)],
    ['of three bytes', '雪'.repeat(68 * 1024)],
  ])(
    'ends with the frame that fills it, in characters %s, and the next one goes on behind that',
    async (_name, text) => {
      const { hub, now } = await openPolls()
      let { cursor } = await now(null)
      for (let n = 0; n < 12; n += 1) await hub.publish('a', { text: `${n} ${text}` })
      const got: string[] = []
      let answers = 0
      while (got.length < 12) {
        const answer = await now(cursor, 0)
        const data = answer.events.filter(({ type }) => type === 'message').map((event) => event.data)
        expect(Buffer.byteLength(data.join(''))).toBeLessThan(1024 * 1024 + Buffer.byteLength(text) + 10)
        got.push(...data.map((each) => each.split(' ')[0] ?? ''))
        cursor = answer.cursor
        answers += 1
      }
      expect(got).toEqual(Array.from({ length: 12 }, (_, n) => String(n)))
      expect(answers).toBe(2)
    },
  )

  test('brings the close of a hub that drains, and the cursor stays the reader’s own (§4.10)', async () => {
    const { hub, environment, now, poll } = await openPolls()
    const { cursor } = await now(null)
    const waiting = poll(cursor)
    await environment.settle()
    void hub.drain()
    await environment.advance(5000)
    const answer = (await waiting) as PollAnswer
    expect(types(answer)).toEqual(['hello', 'close'])
    expect(answer.cursor).toBe(cursor)
    expect(answer.retryMs).toBeGreaterThan(0)
  })
})
