import { once } from 'node:events'
import { createHub, type HubObservations } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { type DecodedId, ulid } from '@rejoin/protocol'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createBusiestAddress } from '../../src/monitoring/busiest-address.ts'
import { watchWindowAge } from '../../src/monitoring/window-age.ts'
import { open, send, until } from '../support/http.ts'
import { admin, asAdmin, observed, publish } from '../support/observed.ts'

describe('/metrics', () => {
  test('is in the format that Prometheus reads', async () => {
    const { url } = await observed()
    const { status, headers, text } = await send(url, '/metrics', { headers: asAdmin })
    expect([status, headers['content-type']]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
    expect(text).toContain('rejoin_info{version="1.2.3",log="memory"} 1')
    expect(text).toContain('nodejs_eventloop_lag_p99_seconds')
  })

  test('counts publishes by result, and how long they took', async () => {
    const { url } = await observed()
    await publish(url, 'demo', 'hello')
    await send(url, '/publish', { method: 'POST', body: '[{"channel":"a","data":1},{"channel":"b","data":2}]' })
    await publish(url, 'demo?type=hello', 'x')
    const metrics = await scrape(url)
    expect(metrics).toMatchObject({
      'rejoin_publishes_total{result="ok"}': 2,
      'rejoin_publishes_total{result="invalid-type"}': 1,
      rejoin_publish_seconds_count: 3,
      rejoin_events_total: 3,
      'rejoin_http_responses_total{path="/publish",status="201"}': 2,
      'rejoin_http_responses_total{path="/publish",status="400"}': 1,
    })
  })

  test('counts new readers, returning readers, and the outcome of their resumes', async () => {
    const { url } = await observed()
    const first = await open(url, '/events/demo')
    await until(first, 'event: hello')
    const { id } = JSON.parse((await publish(url, 'demo', 'one')).text)
    await publish(url, 'demo', 'two')
    const resume = async (cursor: string, text: string) => {
      const stream = await open(url, '/events/demo', { headers: { 'last-event-id': cursor } })
      await until(stream, text)
    }
    await resume(id, 'data: two')
    await resume('nonsense', 'unknown-id')
    await expect
      .poll(() => scrape(url))
      .toMatchObject({
        rejoin_connections: 3,
        'rejoin_readers{mode="live"}': 3,
        'rejoin_connects_total{resuming="true"}': 2,
        'rejoin_connects_total{resuming="false"}': 1,
        'rejoin_resumes_total{outcome="replayed"}': 1,
        'rejoin_resumes_total{outcome="unknown-id"}': 1,
        'rejoin_gaps_total{reason="unknown-id"}': 1,
        rejoin_replayed_events_sum: 1,
        rejoin_replay_seconds_count: 1,
        rejoin_absence_seconds_count: 1,
        rejoin_busiest_address_connects: 3,
        rejoin_deliveries_total: 3,
      })
    first.destroy()
    await expect
      .poll(() => scrape(url))
      .toMatchObject({
        rejoin_connections: 2,
        'rejoin_closes_total{reason="disconnected"}': 1,
        rejoin_connection_seconds_count: 1,
      })
  })

  test('does not count a later gap as a failed resume, and counts readers that left before their resume was done', async () => {
    const { tell, values } = await told()
    const requested = 'X'
    tell('connect', { ...reader, connection: 'c_1', requested, resuming: true })
    tell('replay', { ...reader, connection: 'c_1', requested, replayed: 0, elapsedMs: 1, absenceMs: null })
    tell('gap', {
      ...reader,
      connection: 'c_1',
      requested,
      reason: 'expired',
      absenceMs: 1000,
      resuming: false,
      replayed: 0,
    })
    tell('connect', { ...reader, connection: 'c_2', requested, resuming: true })
    tell('close', { ...reader, connection: 'c_2', reason: 'disconnected', durationMs: 1, cause: undefined })
    expect(await values()).toMatchObject({
      'rejoin_gaps_total{reason="expired"}': 1,
      'rejoin_resumes_total{outcome="expired"}': 0,
      'rejoin_resumes_total{outcome="replayed"}': 1,
      'rejoin_resumes_total{outcome="left"}': 1,
    })
  })

  test('counts rejected readers and publishers, by limit', async () => {
    const { url, rejected } = await observed({ hubOptions: { limits: { maxPerIp: 1 } } })
    await until(await open(url, '/events/demo'), 'event: hello')
    await send(url, '/events/demo')
    rejected('publish-rate')
    rejected('a kind nobody knows')
    await admin(url, '/admin/maintenance', { on: true })
    await send(url, '/poll/demo')
    expect(await scrape(url)).toMatchObject({
      'rejoin_rejects_total{kind="per-ip"}': 1,
      'rejoin_rejects_total{kind="publish-rate"}': 1,
      'rejoin_rejects_total{kind="other"}': 1,
      'rejoin_rejects_total{kind="maintenance"}': 1,
      rejoin_ready: 0,
    })
  })

  test('shows readers that do not keep up, and what waits for them', async () => {
    const { url } = await observed({ handler: { sinkBudgetBytes: 1000 } })
    const stream = await open(url, '/events/demo')
    await until(stream, 'event: hello')
    stream.pause()
    const data = 'x'.repeat(250_000)
    await expect
      .poll(
        async () => {
          await publish(url, 'demo', data)
          return (await scrape(url)).rejoin_slow_readers
        },
        { timeout: 20_000, interval: 1 },
      )
      .toBe(1)
    const { rejoin_backlog_bytes: backlog } = await scrape(url)
    expect(backlog).toBeGreaterThan(1000)
  })

  test('shows the bytes in memory against their limits, and what was evicted, by account', async () => {
    const limits = { maxStreamBytes: 1000, maxAnswerBytes: 2000, maxIncomingBytes: 3000 }
    const { url } = await observed({ hubOptions: { limits } })
    await publish(url, 'demo', 'x'.repeat(4000))
    expect(await scrape(url)).toMatchObject({
      'rejoin_buffer_bytes{account="streams"}': 0,
      'rejoin_buffer_bytes{account="bodies"}': 0,
      'rejoin_buffer_max_bytes{account="streams"}': 1000,
      'rejoin_buffer_max_bytes{account="answers"}': 2000,
      'rejoin_buffer_max_bytes{account="bodies"}': 3000,
      'rejoin_buffer_evictions_total{account="streams",reason="stalled"}': 0,
      'rejoin_buffer_evictions_total{account="answers",reason="overloaded"}': 0,
      'rejoin_buffer_evictions_total{account="bodies",reason="overloaded"}': 1,
    })
  })

  test('counts the reconnects that clients report', async () => {
    const { url } = await observed()
    const record = { event: 'sse_reconnect', delay_ms: 3000, url: 'http://localhost/', timestamp: '' }
    const records = [1, 2, 5, 6, 100].map((attempt) => ({ ...record, attempt }))
    await send(url, '/log', { method: 'POST', body: JSON.stringify(records) })
    expect(await scrape(url)).toMatchObject({
      'rejoin_client_reconnects_total{attempt="5"}': 1,
      'rejoin_client_reconnects_total{attempt="more"}': 2,
      rejoin_client_reconnect_delay_seconds_sum: 15,
    })
  })

  test('has as many series with 100,000 channels, addresses and subjects as with none', async () => {
    const { tell, values } = await told()
    // Without the paths, to which the first of these scrapes adds its own.
    const isOurs = (name: string) => name.startsWith('rejoin_') && !name.startsWith('rejoin_http_')
    const series = async () =>
      Object.keys(await values())
        .filter(isOurs)
        .sort()
    const before = await series()
    expect(before.length).toBeGreaterThan(100)
    for (let count = 0; count < 100_000; count += 1) {
      const channel = `channel/${count}`
      const facts = {
        ip: `10.${count >> 16}.${(count >> 8) & 255}.${count & 255}`,
        userAgent: channel,
        subject: channel,
      }
      const who = { ...facts, connection: `c_${count}`, channels: [channel] }
      tell('publish', { channel, type: channel, id: channel, bytes: 1, subject: channel, repeated: false })
      tell('connect', { ...who, requested: channel, resuming: true })
      tell('reject', { ...who, reason: channel, status: 503 })
      tell('close', { ...who, reason: channel, durationMs: 1, cause: undefined })
    }
    expect(await series()).toEqual(before)
  }, 30_000)

  test('does not let a path that somebody made up become a series', async () => {
    const { url } = await observed()
    for (const path of ['/a', '/b', '//', '/events/x', '/events/y', '/%']) {
      const response = await open(url, path)
      response.destroy()
      await once(response, 'close')
    }
    await expect.poll(async () => (await scrape(url))['rejoin_http_responses_total{path="other",status="404"}']).toBe(4)
    const paths = Object.keys(await scrape(url)).filter((name) => name.startsWith('rejoin_http_responses_total'))
    expect(paths.filter((name) => !/path="(?:other|\/events|\/metrics)"/.test(name))).toEqual([])
  })
})

describe('the age of windows', () => {
  test('is what the log promises while no window is full', async () => {
    const { age, publish } = await windowOfThree()
    await publish(1)
    expect(await age()).toBe(60_000)
  })

  test('is the age of the oldest event where one is full', async () => {
    const { age, publish, returnTo } = await windowOfThree()
    const at = await publish(3)
    returnTo('demo')
    expect(await age(at + 5000)).toBe(5000)
    // With the next scrapes, too, until somebody returns to others.
    expect(await age(at + 6000)).toBe(6000)
  })

  test('is not a number while the log cannot be read', async () => {
    const { age, publish, returnTo, hub } = await windowOfThree()
    await publish(1)
    returnTo('demo')
    await hub.close()
    expect(await age()).toBeNaN()
  })

  test('is asked for of a hundred channels at most, and of no pattern', async () => {
    const { age, returnTo, hub } = await windowOfThree()
    for (let count = 0; count < 1000; count += 1) returnTo(`channel/${count}`, `pattern/${count}/*`)
    await age()
    expect(hub.asked).toHaveLength(100)
    expect(hub.asked.filter((name) => name.includes('*'))).toEqual([])
  })
})

async function windowOfThree() {
  const inner = await createHub({ log: memoryLog({ window: { maxEvents: 3, maxAgeMs: 60_000 } }) })
  onTestFinished(() => inner.close())
  const observers: ((observation: never) => void)[] = []
  const hub = {
    asked: [] as string[],
    log: inner.log,
    close: inner.close,
    on: (_kind: string, observe: (observation: never) => void) => void observers.push(observe) as never,
    admin: {
      window(name: string) {
        hub.asked.push(name)
        return inner.admin.window(name)
      },
    },
  }
  let now = Date.now()
  const read = watchWindowAge(hub, () => now)
  return {
    hub,
    async publish(count: number) {
      const [first] = await inner.publishBatch(Array.from({ length: count }, (_, data) => ({ channel: 'demo', data })))
      // The time of its position, which may be a millisecond after the time of the publish.
      return (ulid().decode(first?.id ?? '') as DecodedId).position.ms
    },
    returnTo(...channels: string[]) {
      for (const observe of observers) observe({ channels } as never)
    },
    age(at = now) {
      now = at
      return read()
    },
  }
}

test('the busiest address is that of the last minute', () => {
  let now = 0
  const busiest = createBusiestAddress(() => now)
  for (const ip of ['a', 'b', 'a', null, 'a']) busiest.connected(ip)
  expect(busiest.connects()).toBe(3)
  now = 60_000
  busiest.connected('b')
  expect(busiest.connects()).toBe(3)
  now = 120_000
  expect(busiest.connects()).toBe(1)
  now = 300_000
  expect(busiest.connects()).toBe(0)
})

const reader = { ip: '10.0.0.1', userAgent: null, subject: null, channels: ['demo'] }

async function scrape(url: string): Promise<Record<string, number>> {
  return parse((await send(url, '/metrics', { headers: asAdmin })).text)
}

function parse(text: string): Record<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return Object.fromEntries(lines.map((line) => [line.replace(/ \S+$/, ''), Number(/\S+$/.exec(line)?.[0])]))
}

/** Metrics of a hub whose observations are made by the test. */
async function told() {
  const hub = await createHub({ log: memoryLog() })
  const observers = new Map<string, ((observation: never) => void)[]>()
  const on = (kind: string, observe: (observation: never) => void) => {
    observers.set(kind, [...(observers.get(kind) ?? []), observe])
    return () => undefined
  }
  const { url } = await observed({ hub: Object.assign(Object.create(hub), { on }) })
  return {
    tell<Kind extends keyof HubObservations>(kind: Kind, observation: HubObservations[Kind]) {
      for (const observe of observers.get(kind) ?? []) observe(observation as never)
    },
    values: () => scrape(url),
  }
}
