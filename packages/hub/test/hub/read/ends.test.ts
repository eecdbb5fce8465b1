import type { Hub } from '@rejoin/hub'
import { createSubscription } from '@rejoin/hub/internal'
import type { Window } from '@rejoin/hub/log'
import { memoryLog } from '@rejoin/hub/memory'
import { createVirtualEnvironment } from '@rejoin/hub/testing'
import { describe, expect, test } from 'vitest'
import { createEnds } from '../../../src/hub/read/ends.ts'
import { serveHub } from '../../support/http-server.ts'
import { laggingLog } from '../../support/lagging-log.ts'
import { publish } from '../../support/publishing.ts'
import { openHub } from '../../support/recorder.ts'

const closeOf = (reader: { events: { type: string; data: string }[] }) =>
  reader.events.filter((event) => event.type === 'close').map((event) => JSON.parse(event.data))

describe('a channel that ends (§4.10)', () => {
  test('closes the streams of its readers, with the reason, when they have every event', async () => {
    const { hub, environment, connect } = await openHub()
    const reader = connect('a')
    await environment.settle()
    const messages = [1, 2].map((data) => ({ channel: 'a', data }))
    await Promise.all([hub.publishBatch(messages), hub.end('a')])
    await environment.settle()
    expect(reader.data).toEqual(['1', '2'])
    expect([closeOf(reader), reader.ended]).toEqual([[{ reason: 'finished' }], true])
  })

  test.each([16 * 1024 * 1024, 1])(
    'gives a late reader all of it, then the same end (hot window of %i bytes)',
    async (hotBytes) => {
      const { hub, environment, connect } = await openHub({ hotBytes })
      await publish(hub, 'a', 1, 2)
      await hub.end('a')
      const late = connect('a', { start: { from: 'earliest' } })
      const fresh = connect('a')
      await environment.settle()
      expect([late.data, closeOf(late)]).toEqual([['1', '2'], [{ reason: 'finished' }]])
      expect([fresh.data, closeOf(fresh)]).toEqual([['1', '2'], [{ reason: 'finished' }]])
    },
  )

  test('keeps a reader of several channels until the last of them has ended', async () => {
    const { hub, environment, connect } = await openHub()
    const reader = connect(['a', 'b'])
    await environment.settle()
    await hub.end('a')
    await publish(hub, 'b', 1)
    await environment.settle()
    expect([reader.data, reader.ended]).toEqual([['1'], false])
    await hub.end('b')
    await environment.settle()
    expect(closeOf(reader)).toEqual([{ reason: 'finished' }])
  })

  test('never ends a pattern: another channel may come', async () => {
    const { hub, environment, connect } = await openHub()
    const reader = connect('a/*')
    await publish(hub, 'a/1', 1)
    await hub.end('a/1')
    await publish(hub, 'a/2', 2)
    await environment.settle()
    expect([reader.data, reader.ended]).toEqual([['1', '2'], false])
  })

  test('closes the stream of a reader that comes in the same turn', async () => {
    const { hub, environment, connect } = await openHub()
    const reader = connect('a')
    await hub.end('a')
    await environment.settle()
    expect(closeOf(reader)).toEqual([{ reason: 'finished' }])
  })

  test('closes the stream of a reader that is slow to catch up, however many others come meanwhile', async () => {
    const { hub, environment, connect } = await openHub({ hotBytes: 1 })
    await publish(hub, 'a', 1, 2)
    await hub.end('a')
    const slow = connect('a', { start: { from: 'earliest' }, fullAfter: 1 })
    await environment.settle()
    for (let other = 0; other < 10_001; other += 1) connect(`others/${other}`)
    await environment.settle()
    for (let turn = 0; turn < 3; turn += 1) {
      slow.drain()
      await environment.settle()
    }
    expect([slow.data, closeOf(slow)]).toEqual([['1', '2'], [{ reason: 'finished' }]])
  })

  test('loses no event that fills the sink of a reader right before its stream closes', async () => {
    const { hub, environment, connect } = await openHub()
    await publish(hub, 'a', 1)
    await hub.end('a')
    // Its event is of another type than these readers want, so a checkpoint leads them past it.
    const greeting = connect('a', { start: { from: 'earliest' }, types: ['none'] })
    await environment.settle()
    // There is room for the greeting, and the checkpoint behind it is too much.
    const fullAfter = greeting.text.indexOf('event: checkpoint')
    const slow = connect('a', { start: { from: 'earliest' }, types: ['none'], fullAfter })
    await environment.settle()
    slow.drain()
    await environment.settle()
    expect(slow.events.map(({ type }) => type)).toEqual(['hello', 'checkpoint', 'close'])
  })

  test.each(['end', 'delete'] as const)(
    'that the log has forgotten after its %s goes on for all readers, once it has an event again (§5.8)',
    async (how) => {
      const environment = createVirtualEnvironment()
      const log = memoryLog({ window: { maxAgeMs: 1000 }, forgetAfterMs: 1000 })
      const { hub, connect } = await openHub({ log, environment })
      await publish(hub, 'a', 1)
      const { id: end } = await hub[how]('a')
      const asked = connect('a', { cursor: end })
      await environment.settle()
      expect(closeOf(asked)).toEqual([{ reason: 'finished' }])

      await environment.advance(60_000)
      await publish(hub, 'a', 2)
      const back = connect('a', { cursor: end })
      const fresh = connect('a')
      await environment.settle()
      await publish(hub, 'a', 3)
      await environment.settle()
      // A reader from before a deletion is told of a gap first, and goes on behind it.
      expect([back.data, back.ended]).toEqual([how === 'end' ? ['2', '3'] : ['3'], false])
      expect([fresh.data, fresh.ended]).toEqual([['3'], false])
      const polls = { readsStatus: true, polls: true }
      const request = { subscription: createSubscription(['a']), start: { from: 'cursor' as const, cursor: end } }
      expect(await hub.port.admit(request, polls)).toMatchObject({ kind: 'admitted' })
    },
  )

  test('rejects later publishes, and can be ended again', async () => {
    const { hub } = await openHub()
    const { id } = await hub.end('a')
    await expect(hub.publish('a', { data: 1 })).rejects.toMatchObject({ code: 'channel-ended' })
    expect(await hub.end('a')).toEqual({ id })
    expect((await hub.admin.window('a')).ended).toBe(true)
  })

  test('announces a gap to a reader that lost part of it, before it closes the stream', async () => {
    const { hub, environment, connect } = await openHub({ hotBytes: 1, log: memoryLog({ window: { maxEvents: 1 } }) })
    const [first] = await publish(hub, 'a', 1, 2, 3)
    await hub.end('a')
    const reader = connect('a', { cursor: first as string })
    await environment.settle()
    expect(reader.events.map((event) => event.type)).toEqual(['hello', 'sync-required', 'close'])
  })

  test('closes the stream of a reader also when the tail lost its position while the reader caught up', async () => {
    let hub: Hub
    let skip = false
    const source = memoryLog({ window: { maxEvents: 1 } })
    const opened = await openHub({
      hotBytes: 1,
      log: {
        name: 'leaky',
        async open(given) {
          const log = await source.open(given)
          const tail = log.tail.bind(log)
          log.tail = (after, onBatch) =>
            tail(after, (batch) => {
              const last = batch.events.at(-1)
              onBatch(skip && last ? { after: last.position, events: [] } : batch)
            })
          return log
        },
      },
      async snapshot() {
        skip = true
        await publish(hub, 'b', 1)
        return 'state'
      },
    })
    hub = opened.hub
    const [first] = await publish(hub, 'a', 1, 2, 3)
    await hub.end('a')
    const reader = opened.connect('a', { cursor: first as string })
    await opened.environment.settle()
    expect(reader.events.map((event) => event.type)).toEqual(['hello', 'sync-required', 'close'])
  })

  test('does not reject a reader for which the log holds events that this hub has yet to hear', async () => {
    const log = laggingLog()
    const { hub, environment } = await openHub({ log: log.source })
    const [first] = await publish(hub, 'a', 1)
    log.hold()
    const late = Promise.all([publish(hub, 'a', 2), hub.end('a')])
    await environment.settle()
    const request = {
      subscription: createSubscription(['a']),
      start: { from: 'cursor' as const, cursor: first as string },
    }
    expect(await hub.port.admit(request, { readsStatus: false })).toMatchObject({ kind: 'admitted' })
    log.release()
    const [[last]] = await late
    const returning = { ...request, start: { from: 'cursor' as const, cursor: last as string } }
    expect(await hub.port.admit(returning, { readsStatus: false })).toEqual({ kind: 'finished' })
  })
})

describe('the knowledge of a hub that a channel has ended', () => {
  const end = { ms: 7, seq: 0 }

  /** A log that answers when it is told to. */
  function openEnds() {
    const answers: ((ended: boolean) => void)[] = []
    const window = { channel: 'a', events: 0, bytes: 0, trimmedThrough: { ms: 0, seq: 0 } }
    const windows = () =>
      new Promise<Window[]>((resolve) => {
        answers.push((ended) => resolve([ended ? { ...window, ended: end } : window]))
      })
    return { ends: createEnds({ windows }), answers }
  }

  test('is not undone by an answer from before the end', async () => {
    const { ends, answers } = openEnds()
    const learning = ends.learn(['a'])
    ends.add('a', end)
    answers[0]?.(false)
    await learning
    expect(ends.of(['a'])).toEqual(end)
  })

  test('is not taken from an answer from before the channel was invalidated', async () => {
    const { ends, answers } = openEnds()
    const learning = ends.learn(['a'])
    ends.invalidated('a')
    answers[0]?.(true)
    expect([await learning, ends.knows(['a'])]).toEqual([undefined, false])
  })

  test('is taken from an answer that was asked for after the channel was invalidated, although others still wait', async () => {
    const { ends, answers } = openEnds()
    const early = ends.learn(['a'])
    ends.invalidated('a')
    const late = ends.learn(['a'])
    answers[1]?.(true)
    expect(await late).toEqual(end)
    answers[0]?.(false)
    expect([await early, ends.of(['a'])]).toEqual([end, end])
  })

  test('is not taken from an answer from before the log lost the end', async () => {
    const { ends, answers } = openEnds()
    const learning = ends.learn(['a'])
    ends.clear()
    answers[0]?.(true)
    await expect.poll(() => answers).toHaveLength(2)
    answers[1]?.(false)
    await learning
    expect([ends.of(['a']), ends.knows(['a'])]).toEqual([undefined, true])
  })
})

describe('over HTTP, a channel that has ended', () => {
  test('answers 204 to a reader that has all of it, on streams and polls, and 200 to everybody else', async () => {
    const { hub, url } = await serveHub()
    const [first, last] = await publish(hub, 'a', 1, 2)
    const ended = await fetch(`${url('')}/end/a`, { method: 'POST' })
    expect([ended.status, await ended.json()]).toEqual([200, { id: expect.any(String) }])
    const statusWith = async (path: string, cursor: string) => {
      const response = await fetch(`${url('')}${path}`, { headers: { 'Last-Event-ID': cursor } })
      return [response.status, await response.text()]
    }
    const end = (await hub.end('a')).id
    expect(await statusWith('/events/a', end)).toEqual([204, ''])
    expect(await statusWith('/poll/a', end)).toEqual([204, ''])
    expect(await statusWith('/events/a', last as string)).toEqual([204, ''])
    expect(await statusWith('/events/a?type=other', first as string)).toEqual([204, ''])
    expect(await statusWith('/events/a', first as string)).toEqual([200, expect.stringContaining('finished')])
    expect(await statusWith('/events/a', 'nonsense')).toEqual([200, expect.stringContaining('sync-required')])
    expect((await statusWith('/poll/a?waitMs=0', first as string))[0]).toBe(200)
  })

  test('answers 409 to a publish', async () => {
    const { hub, url } = await serveHub()
    await hub.end('a')
    const response = await fetch(`${url('')}/publish/a`, { method: 'POST', body: 'late' })
    expect([response.status, await response.json()]).toMatchObject([409, { error: { code: 'channel-ended' } }])
  })

  test('is ended by POST alone, and by those who may publish to it', async () => {
    const { url } = await serveHub({}, { authorize: () => ({ subject: 'me', subscribe: ['*'], publish: ['mine/*'] }) })
    expect((await fetch(`${url('')}/end/mine/1`)).status).toBe(405)
    expect((await fetch(`${url('')}/end/yours`, { method: 'POST' })).status).toBe(403)
    expect((await fetch(`${url('')}/end/mine/1`, { method: 'POST' })).status).toBe(200)
  })
})
