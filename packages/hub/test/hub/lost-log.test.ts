import type { Hub, HubOptions, LogSource } from '@rejoin/hub'
import type { Log, TailBatch } from '@rejoin/hub/log'
import { memoryLog } from '@rejoin/hub/memory'
import { type Position, RejoinError } from '@rejoin/protocol'
import { describe, expect, test } from 'vitest'
import { serveHub } from '../support/http-server.ts'
import { publish } from '../support/publishing.ts'
import { openHub } from '../support/recorder.ts'

/** A log that can be cut off, as one on another machine can. */
function distantLog() {
  const inner = memoryLog()
  let away = false
  let silentMs = 0
  let asked = 0
  let unheard: (() => void)[] | undefined
  let unanswered: ((error: unknown) => void)[] | undefined
  const awayError = () => new RejoinError('The log is away.', { code: 'log-unavailable', retryable: true })
  const writes = ['append', 'probe', 'invalidate', 'end'] as const
  const reads = ['head', 'read', 'readBack', 'windows', 'retained', 'channels'] as const
  let guarded: readonly string[] = writes
  let opened: Log | undefined
  const source: LogSource = {
    name: 'distant',
    async open(environment) {
      const log = await inner.open(environment)
      opened = log
      return new Proxy(log, {
        get(target, name) {
          if (name === 'tailSilenceMs') return () => silentMs
          if (name === 'tail') {
            return (after: Position, onBatch: (batch: TailBatch) => void) =>
              log.tail(after, (batch) => {
                if (unheard) unheard.push(() => onBatch(batch))
                else onBatch(batch)
              })
          }
          const value: unknown = Reflect.get(target, name, target)
          if (typeof value !== 'function') return value
          if (!guarded.includes(name as string)) return value.bind(target)
          asked += 1
          if (!away) return value.bind(target)
          return () => {
            const waiting = unanswered
            return waiting ? new Promise((_, reject) => void waiting.push(reject)) : Promise.reject(awayError())
          }
        },
      }) as Log
    },
  }
  return {
    source,
    /** How often it was asked for something that it rejects while it is away. */
    get asked() {
      return asked
    },
    cut() {
      away = true
      for (const reject of unanswered ?? []) reject(awayError())
      unanswered = undefined
    },
    /** Cut off, cannot be read either, and has been silent for too long. */
    vanish() {
      guarded = [...writes, ...reads]
      silentMs = 11_000
      this.cut()
    },
    /** Another hub on the same log, which still reaches it, publishes. */
    async publishElsewhere(channel: string, data: string) {
      await opened?.append([{ channel, type: 'message', data }], { token: `elsewhere ${data}` })
    },
    /** Says nothing at all, until it is cut off. */
    hang() {
      away = true
      unanswered = []
    },
    /** Says nothing to readers either. */
    hangForAll() {
      guarded = [...writes, ...reads]
      this.hang()
    },
    /** Takes everything, and tells nothing of it. */
    muffle() {
      unheard = []
    },
    silence(ms: number) {
      silentMs = ms
    },
    heal() {
      away = false
      guarded = writes
      silentMs = 0
      for (const hear of unheard ?? []) hear()
      unheard = undefined
    },
  }
}

async function openDistant(options: Partial<HubOptions> = {}) {
  const distant = distantLog()
  return { distant, ...(await openHub({ log: distant.source, ...options })) }
}

const closing = (reader: { events: { type: string; data: string }[] }) =>
  reader.events.filter(({ type }) => type === 'close').map(({ data }) => JSON.parse(data).reason)

describe('a hub that hears nothing from its log', () => {
  test('keeps its readers for a while, then closes their streams, and they keep their cursors', async () => {
    const { distant, hub, environment, connect } = await openDistant()
    const reader = connect('a')
    const [id] = await publish(hub, 'a', 1)
    distant.silence(9000)
    await environment.advance(5000)
    expect(reader.ended).toBe(false)
    const told: unknown[] = []
    hub.on('silence', (observation) => told.push(observation))
    distant.silence(11_000)
    await environment.advance(7000)
    expect([closing(reader), reader.lastId, told]).toEqual([['log-unavailable'], id, [{ silentMs: 11_000 }]])
  })

  test('rejects new readers until it hears from its log again', async () => {
    const { distant, environment, connect } = await openDistant()
    distant.silence(11_000)
    await environment.advance(2000)
    expect(closing(connect('a'))).toEqual(['log-unavailable'])
    distant.heal()
    await environment.advance(2000)
    expect(connect('a').ended).toBe(false)
  })

  test('asks all readers that it sends away to stay away for 15 to 30 s, each for a time of its own (§4.11)', async () => {
    const { distant, environment, connect } = await openDistant()
    const live = Array.from({ length: 20 }, () => connect('a'))
    await environment.settle()
    distant.vanish()
    await environment.advance(10_000)
    const rejected = Array.from({ length: 20 }, () => connect('a'))
    for (const readers of [live, rejected]) {
      const times = readers.map(({ text }) => Number(/retry: (\d+)\s+event: close/.exec(text)?.[1]))
      expect(times.filter((ms) => !(ms >= 15_000 && ms <= 30_000))).toEqual([])
      expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(5000)
    }
    distant.heal()
    await environment.advance(5000)
    expect(connect('a').ended).toBe(false)
  })

  test('rejects by status a client that asks for that (§4.12)', async () => {
    const distant = distantLog()
    const { hub, url } = await serveHub({ log: distant.source })
    const silent = new Promise((resolve) => void hub.on('silence', resolve))
    distant.silence(11_000)
    await silent
    const answer = await fetch(url('/events/a?reject=status'))
    expect([answer.status, Number(answer.headers.get('retry-after')) > 0]).toEqual([503, true])
    expect(await answer.json()).toMatchObject({ error: { code: 'log-unavailable' } })
  })

  test('answers a reader with the head of its stream while the log is asked (§4.2)', async () => {
    const distant = distantLog()
    // Heartbeats so rare that none of them brings the head.
    const { open } = await serveHub({ log: distant.source, heartbeatMs: 3_600_000 })
    distant.hangForAll()
    const reader = await open('/events/a?cursor=earliest')
    expect([reader.status, reader.text]).toEqual([200, ''])
    distant.cut()
    await reader.waitFor((events) => events.some(({ type }) => type === 'close'))
  })

  test('keeps its readers for ever when maxTailSilenceMs is Infinity', async () => {
    const { distant, environment, connect } = await openDistant({ maxTailSilenceMs: Number.POSITIVE_INFINITY })
    const reader = connect('a')
    distant.silence(1e9)
    await environment.advance(60_000)
    expect(reader.ended).toBe(false)
  })
})

describe('a write that the log has taken, and the hub has not heard of', () => {
  const taken: [string, (hub: Hub) => Promise<unknown>][] = [
    ['a publish', (hub) => hub.publish('a', { data: 1 })],
    ['an invalidation', (hub) => hub.invalidate('a')],
    ['an end', (hub) => hub.end('a')],
  ]

  test.each(taken)('such as %s is answered once the hub counts its log as silent', async (_, ask) => {
    const { distant, hub, environment } = await openDistant()
    distant.muffle()
    let answers = 0
    void ask(hub).then(() => {
      answers += 1
    })
    distant.silence(9000)
    await environment.advance(2000)
    expect(answers).toBe(0)
    distant.silence(11_000)
    await environment.advance(2000)
    expect(answers).toBe(1)
    await ask(hub)
  })

  test('reaches readers when it is heard again', async () => {
    const { distant, hub, environment, connect } = await openDistant()
    distant.muffle()
    distant.silence(11_000)
    await environment.advance(2000)
    const { id } = await hub.publish('a', { data: 1 })
    distant.heal()
    await environment.advance(2000)
    const [next] = await publish(hub, 'a', 2)
    const reader = connect('a', { cursor: id })
    await environment.settle()
    expect([reader.data, reader.lastId]).toEqual([['2'], next])
  })
})

describe('a publish while the log is away', () => {
  test('is rejected, and says so', async () => {
    const { distant, hub } = await openDistant()
    distant.cut()
    await expect(hub.publish('a', { data: 1 })).rejects.toMatchObject({ code: 'log-unavailable' })
  })

  test('reaches the readers of this hub with an id that no log accepts, when whenDown is local', async () => {
    const { distant, hub, environment, connect } = await openDistant({ whenDown: 'local' })
    const audit: unknown[] = []
    hub.on('local', ({ channel, id }) => audit.push([channel, id]))
    const reader = connect('a')
    await publish(hub, 'a', 1)
    distant.cut()
    const local = await hub.publish('a', { data: 2 })
    await environment.settle()
    expect([reader.data, local.local, audit]).toEqual([['1', '2'], true, [['a', local.id]]])
    const back = connect('a', { cursor: reader.lastId })
    await environment.settle()
    expect(JSON.parse(back.events[1]?.data ?? '')).toMatchObject({ reason: 'epoch', requested: local.id })
  })

  test('is followed by an invalidation of its channel, before anything else is appended to it', async () => {
    const { distant, hub, environment, connect } = await openDistant({ whenDown: 'local' })
    const [first] = await publish(hub, 'a', 1)
    const here = connect('a')
    const bystander = connect('b')
    await environment.settle()
    distant.cut()
    await hub.publish('a', { data: 2 })
    const healed: unknown[] = []
    hub.on('healed', (observation) => healed.push(observation))
    distant.heal()
    // Still past the log: the breaker closes after everybody has been told.
    expect((await hub.publish('a', { data: 3 })).local).toBe(true)
    await environment.advance(2000)
    expect((await hub.publish('a', { data: 4 })).local).toBeUndefined()
    await environment.settle()
    expect(here.events.map(({ type, data }) => (type === 'message' ? data : type))).toEqual([
      ...['hello', '2', '3', 'sync-required', '4'],
    ])
    expect(healed).toEqual([{ channels: ['a'] }])
    const absent = connect('a', { cursor: first as string })
    await environment.settle()
    expect(JSON.parse(absent.events[1]?.data ?? '')).toMatchObject({ reason: 'forced' })
    expect(bystander.events.map(({ type }) => type)).not.toContain('sync-required')
  })

  const shown = (reader: { events: { type: string; data: string }[] }) =>
    reader.events.map(({ type, data }) => (type === 'message' ? data : type))

  test('reaches connected and new readers for as long as the log is away (§5.6)', async () => {
    const { distant, hub, environment, connect } = await openDistant({ whenDown: 'local' })
    const reader = connect('a')
    await publish(hub, 'a', 1)
    distant.vanish()
    await environment.advance(60_000)
    const newcomer = connect('a')
    for (const data of [2, 3]) {
      expect((await hub.publish('a', { data })).local).toBe(true)
      await environment.advance(60_000)
    }
    expect(shown(reader)).toEqual(['hello', '1', '2', '3'])
    expect(shown(newcomer)).toEqual(['hello', '2', '3'])
    distant.heal()
    await environment.advance(5000)
    expect((await hub.publish('a', { data: 4 })).local).toBeUndefined()
    await environment.settle()
    for (const each of [reader, newcomer]) expect(shown(each).slice(-3)).toEqual(['3', 'sync-required', '4'])
    expect([reader.ended, newcomer.ended]).toEqual([false, false])
  })

  test('tells a reader that returns meanwhile to reload, and goes on with what comes', async () => {
    const { distant, hub, environment, connect } = await openDistant({ whenDown: 'local' })
    const [first] = await publish(hub, 'a', 1)
    distant.vanish()
    await environment.advance(3000)
    const { id: local } = await hub.publish('a', { data: 2 })
    await environment.settle()
    const back = [first as string, local, 'nonsense'].map((cursor) => connect('a', { cursor }))
    await environment.settle()
    await hub.publish('a', { data: 3 })
    await environment.settle()
    for (const reader of back) expect(shown(reader)).toEqual(['hello', 'sync-required', '3'])
    expect(back.map((reader) => JSON.parse(reader.events[1]?.data ?? '').reason)).toEqual([
      'forced',
      'epoch',
      'unknown-id',
    ])
    expect(closing(connect('a', { start: { from: 'earliest' } }))).toEqual(['log-unavailable'])
  })

  test('is announced as a gap to the readers that have it, before they get an event of the log (§5.6)', async () => {
    const { distant, hub, environment, connect } = await openDistant({ whenDown: 'local' })
    const [here, bystander] = [connect('a'), connect('b')]
    await publish(hub, 'a', 1)
    distant.vanish()
    await environment.advance(3000)
    await hub.publish('a', { data: 2 })
    await environment.settle()
    distant.heal()
    await distant.publishElsewhere('b', '3')
    await environment.settle()
    expect(shown(here)).toEqual(['hello', '1', '2', 'sync-required'])
    expect(shown(bystander)).toEqual(['hello', '3'])
    // Even if the hub dies before it can tell the others: this reader goes on from a position of the log, at any hub.
    expect(here.lastId).toBe(bystander.lastId)
  })

  test('does not reach polls, which are told to return later (§4.14)', async () => {
    const distant = distantLog()
    const { hub, url } = await serveHub({ log: distant.source, whenDown: 'local' })
    const silent = new Promise((resolve) => void hub.on('silence', resolve))
    distant.vanish()
    await silent
    const answer = await fetch(url('/poll/a'))
    expect([answer.status, Number(answer.headers.get('retry-after')) > 0]).toEqual([503, true])
    expect((await fetch(url('/events/a?reject=status'))).status).toBe(200)
  })

  test.each([
    ['that tries whether the log is back', 'cut'],
    ['whose publish the log has not answered', 'hang'],
  ] as const)('leaves a closed hub %s in peace', async (_, how) => {
    const { distant, hub, environment } = await openDistant({ whenDown: 'local' })
    distant[how]()
    const first = hub.publish('a', { data: 1 })
    if (how === 'cut') {
      await first
      distant.hang()
      await environment.advance(1500)
    }
    const closing = hub.close()
    distant.cut()
    if (how === 'hang') await expect(first).rejects.toMatchObject({ code: 'log-unavailable' })
    await closing
    const { asked } = distant
    await environment.advance(10_000)
    expect(distant.asked).toBe(asked)
  })

  test('is answered 202 when it is kept nowhere, and 503 with a time to try again when it is rejected', async () => {
    const distant = distantLog()
    const { url } = await serveHub({ log: distant.source, whenDown: 'local' })
    distant.cut()
    const post = (body: string) => fetch(url('/publish'), { method: 'POST', body })
    const one = await post('{"channel":"a","data":1}')
    expect([one.status, await one.json()]).toEqual([202, { id: expect.any(String), durability: 'none' }])
    expect((await post('[{"channel":"a","data":1},{"channel":"b","data":2}]')).status).toBe(202)
    const other = distantLog()
    const rejecting = await serveHub({ log: other.source })
    other.cut()
    const rejected = await fetch(rejecting.url('/publish/a'), {
      method: 'POST',
      body: '1',
      headers: { 'Content-Type': 'application/json' },
    })
    expect([rejected.status, rejected.headers.get('retry-after')]).toEqual([503, '1'])
  })
})
