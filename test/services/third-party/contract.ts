import { expect, type TestContext, test } from 'vitest'
import { serveHub } from '../../faults/hubs/served-hub.ts'
import { openFaultProxy } from '../../support/fault-proxy/fault-proxy.ts'
import { until } from '../../support/until.ts'
import type { ThirdPartyClient, ThirdPartyReader } from './client.ts'
import { openScriptedServer, type ScriptedAnswer } from './server.ts'
import { runStory } from './story.ts'

/** What a client does where clients differ. Each is measured, and docs/reference/clients.md says the same. */
export interface Habits {
  /** Whether it comes back after an answer that ended in order, as when a hub is stopped. */
  readonly returnsAfterEnd: boolean
  /** Whether it counts the id of an event that was cut off, which it then never gets. */
  readonly countsCutIds: boolean
  readonly at204: 'stops' | 'returns'
  readonly at503: 'stops' | 'returns'
  /** What it waits when no `retry` was ever sent. */
  readonly unaskedMs: number
  /** What it shows of a comment. */
  readonly comments: 'hidden' | 'as empty messages'
}

/** Those of an `EventSource` as browsers have it. */
export const eventSourceHabits: Habits = {
  returnsAfterEnd: true,
  countsCutIds: false,
  at204: 'stops',
  at503: 'stops',
  unaskedMs: 3000,
  comments: 'hidden',
}

// Printed with every failure; set it to repeat a run. Timing is the machine's own, so a repetition is close, not equal.
const seed = Number(process.env.REJOIN_FAULTS_SEED ?? 1)
const patienceMs = 60_000

/** Holds a client to the habits it is said to have, and the hub to what it promises such a client. */
export function thirdPartyContract(client: ThirdPartyClient, habits: Habits): void {
  if (habits.returnsAfterEnd && !habits.countsCutIds) {
    test.concurrent('ten cuts at random bytes, an absence, a crash and a restart of the hub: nothing lost, doubled or out of order', {
      timeout: 240_000,
    }, async () => {
      const { published, received, cuts, told } = await runStory(client, { seed, cuts: 10 })
      expect(received, `seed ${seed}`).toEqual(published)
      expect(cuts).toBeGreaterThanOrEqual(11)
      expect(told.filter(({ type }) => type === 'sync-required')).toEqual([])
    })
  }

  test.concurrent('a gap is shown as sync-required before anything later, and reading goes on (§4.6)', async (context) => {
    const { hub, port, close } = await serveHub({
      window: { maxEvents: 3 },
      hotBytes: 1,
      heartbeatMs: 500,
      retryMs: 500,
    })
    context.onTestFinished(close)
    const proxy = await openFaultProxy({ target: { port }, random: Math.random })
    context.onTestFinished(proxy.close)
    const reader = await open(context, `http://127.0.0.1:${proxy.port}/events/numbers`)
    await hasTold(reader, 'hello')
    await hub.publish('numbers', { text: '1' })
    await hasTold(reader, 'message')
    proxy.reject()
    proxy.cutAll('reset')
    for (let n = 2; n <= 9; n += 1) await hub.publish('numbers', { text: `${n}` })
    proxy.accept()
    await hasTold(reader, 'sync-required')
    await hub.publish('numbers', { text: '10' })
    await hasTold(reader, 'message', 2)
    const shown = reader.told.filter(({ type, data }) => type !== 'checkpoint' && data !== '')
    expect(shown.map(({ type, data }) => (type === 'message' ? data : type))).toEqual([
      'hello',
      '1',
      'hello',
      'sync-required',
      '10',
    ])
    expect(JSON.parse(shown[3]?.data ?? '')).toMatchObject({ reason: 'expired', channels: ['numbers'] })
  })

  if (habits.returnsAfterEnd) {
    test.concurrent('a full hub that rejects it is asked again, and lets it in when there is room (§4.12)', async (context) => {
      const { hub, port, close } = await serveHub({ heartbeatMs: 500, retryMs: 500, limits: { maxConnections: 1 } })
      context.onTestFinished(close)
      const other = await fetch(`http://127.0.0.1:${port}/events/other`)
      const reader = await open(context, `http://127.0.0.1:${port}/events/numbers`)
      await hasTold(reader, 'close')
      expect(reader.told).toEqual([{ type: 'close', data: '{"reason":"overloaded"}' }])
      await other.body?.cancel()
      await hasTold(reader, 'hello')
      await hub.publish('numbers', { text: '1' })
      await hasTold(reader, 'message')
    })

    test.concurrent('a channel that has ended: all of it, close with finished, then 204, at which it stops (§4.10)', async (context) => {
      const { hub, port, close } = await serveHub({ heartbeatMs: 500, retryMs: 500 })
      context.onTestFinished(close)
      const reader = await open(context, `http://127.0.0.1:${port}/events/numbers`)
      await hasTold(reader, 'hello')
      await hub.publish('numbers', { text: '1' })
      await hub.end('numbers')
      await hasTold(reader, 'close')
      const shown = reader.told.filter(({ data }) => data !== '').slice(1)
      expect(shown.map(({ data }) => data)).toEqual(['1', '{"reason":"finished"}'])
      await until('it stops', () => reader.stopped, patienceMs)
    })
  } else {
    test.concurrent('an answer that ends in order is the end: it does not come back', async (context) => {
      const server = await script(context, [{ text: 'retry: 10\n\nid: 7\ndata: a\n\n', after: 'end' }])
      const reader = await open(context, server.url)
      await until('it stops', () => reader.stopped, patienceMs)
      expect(server.requests.length).toBe(1)
    })
  }

  test.concurrent(`at 204 it ${habits.at204}`, (context) => meets(context, 204, habits.at204))

  test.concurrent(`at 503 it ${habits.at503}`, (context) => meets(context, 503, habits.at503))

  async function meets(context: TestContext, status: number, then: 'stops' | 'returns'): Promise<void> {
    const server = await script(context, [
      { text: 'retry: 10\nid: 7\ndata: a\n\n' },
      { status, after: 'end' },
      { status, after: 'end' },
      { text: 'data: b\n\n' },
    ])
    const reader = await open(context, server.url)
    await hasTold(reader, 'message')
    server.cut()
    if (then === 'stops') {
      await until('it stops', () => reader.stopped, patienceMs)
      expect(server.requests.length).toBe(2)
    } else {
      await hasTold(reader, 'message', 2)
      expect(server.requests.map(({ cursor }) => cursor)).toEqual([null, '7', '7', '7'])
    }
  }

  test.concurrent('`retry` is what it waits, each time, and waits do not grow by themselves', async (context) => {
    const again: ScriptedAnswer = { after: 'cut' }
    const server = await script(context, [{ text: 'retry: 200\ndata: a\n\n' }, again, again, again, again, {}])
    await hasTold(await open(context, server.url), 'message')
    server.cut()
    await until('it has come back five times', () => server.requests.length === 6, patienceMs)
    const waits = waitsOf(server.requests)
    // The time of a server and that of a client may differ by a rounding.
    for (const wait of waits) expect(wait).toBeGreaterThanOrEqual(198)
    // The last would be 3200 if they doubled.
    expect(waits.at(-1)).toBeLessThan(3000)
  })

  test.concurrent(`unasked it waits for ${habits.unaskedMs} ms`, async (context) => {
    const server = await script(context, [{ text: 'data: a\n\n' }, {}])
    await hasTold(await open(context, server.url), 'message')
    server.cut()
    await until('it has come back', () => server.requests.length === 2, patienceMs)
    const [wait = 0] = waitsOf(server.requests)
    expect(wait).toBeGreaterThanOrEqual(habits.unaskedMs - 2)
    expect(wait).toBeLessThan(habits.unaskedMs + 5000)
  })

  test.concurrent(
    habits.countsCutIds
      ? 'the id of an event that was cut off counts, so that the event is lost'
      : 'an event that was cut off is not shown, and asked for again',
    async (context) => {
      const text = 'retry: 10\nid: 7\ndata: a\n\nid: 8\ndata: b\n'
      const server = await script(context, [{ text }, {}])
      const reader = await open(context, server.url)
      await hasTold(reader, 'message')
      server.cut()
      await until('it has come back', () => server.requests.length === 2, patienceMs)
      expect(server.requests[1]?.cursor).toBe(habits.countsCutIds ? '8' : '7')
      expect(shownBy(reader)).toEqual(['a'])
    },
  )

  test.concurrent(`heartbeats are ${habits.comments === 'hidden' ? 'not shown' : `shown ${habits.comments}`}`, async (context) => {
    const server = await script(context, [{ text: ': hb\n\nretry: 10\n: hb\n\ndata: a\n\n' }])
    const reader = await open(context, server.url)
    await until('it has shown the event', () => shownBy(reader).includes('a'), patienceMs)
    expect(shownBy(reader)).toEqual(habits.comments === 'hidden' ? ['a'] : ['', '', 'a'])
  })

  async function open({ onTestFinished }: TestContext, url: string): Promise<ThirdPartyReader> {
    const reader = await client.open(url)
    onTestFinished(() => reader.close())
    return reader
  }
}

async function script({ onTestFinished }: TestContext, answers: readonly ScriptedAnswer[]) {
  const server = await openScriptedServer(answers)
  onTestFinished(server.close)
  return server
}

function shownBy({ told }: ThirdPartyReader): string[] {
  return told.map(({ data }) => data)
}

function hasTold({ told }: ThirdPartyReader, type: string, times = 1): Promise<void> {
  const count = () => told.filter((one) => one.type === type && one.data !== '').length
  return until(`the client has shown ${type}`, () => count() >= times, patienceMs)
}

function waitsOf(requests: readonly { at: number; leftAt?: number }[]): number[] {
  return requests.slice(1).map(({ at }, index) => at - (requests[index]?.leftAt ?? at))
}
