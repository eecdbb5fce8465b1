import { createHub, type Hub, RejoinError } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { createVirtualEnvironment } from '@rejoin/hub/testing'
import { expect, onTestFinished, test } from 'vitest'
import { createFeed } from '../src/feed.ts'
import type { Fact } from '../src/service.ts'
import { browseUrl } from '../src/service-type.ts'
import { eventsOf, has, hasEvents, stage } from './support/stage.ts'

async function opened(): Promise<Hub> {
  const hub = await createHub({ log: memoryLog(), snapshotUrl: browseUrl })
  onTestFinished(() => hub.close())
  return hub
}

const found = (name: string): Fact => ({ event: 'found', service: { type: '_http._tcp.local.', name } })

test('a hub of the user carries the events, with its own ids', async () => {
  const hub = await opened()
  const { read, announce } = await stage({ hub })
  const reader = await read()
  await reader.until(has('hello'))
  announce()
  await reader.until(hasEvents(1))
  expect(eventsOf(reader)[0]?.id).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/)
  expect((await hub.admin.window('mdns/_http._tcp')).newest).toBe(eventsOf(reader)[0]?.id)
})

test('when a publish may or may not be in the log, readers are told of a gap, and every current fact is published again', async () => {
  const hub = await opened()
  let isAway = true
  const shaky: Hub = {
    ...hub,
    async publishBatch(messages) {
      const events = await hub.publishBatch(messages)
      if (!isAway) return events
      isAway = false
      throw new RejoinError('The answer was lost.', { code: 'log-unavailable', retryable: true })
    },
  }
  const { read, announce, mdns } = await stage({ hub: shaky })
  const watch = await mdns.watch('http')
  const reader = await read()
  await reader.until(has('hello'))
  announce()
  await reader.until(has('sync-required'))
  const sync = reader.frames.find(({ type }) => type === 'sync-required')
  expect(sync?.data).toMatchObject({ reason: 'forced', snapshotUrl: '/v1/mdns/browse?type=_http._tcp' })
  const [again, ...others] = await watch.services()
  expect(others).toEqual([])
  expect(again?.fact).toMatchObject({ event: 'resolved', service: { name: 'My NAS' } })
  expect(again?.id).not.toBe(reader.frames[1]?.id)
})

test('facts that wait for too long are dropped, and the current facts are published when the log is back', async () => {
  const hub = await opened()
  const time = createVirtualEnvironment()
  let failures = 2
  const away: Hub = {
    ...hub,
    invalidate(channel) {
      failures -= 1
      return failures > 0 ? Promise.reject(new Error('away')) : hub.invalidate(channel)
    },
  }
  const feed = createFeed({ hub: away, channel: 'mdns/_http._tcp', timing: time, current: () => [found('now')] })
  feed.say(Array.from({ length: 10_001 }, (_, n) => found(`${n}`)))
  await time.advance(1500)
  expect((await feed.known()).map(({ fact }) => fact.service.name)).toEqual(['now'])
})

test('a hub that takes no publish is tried once a second, and gets the facts when it takes one', async () => {
  const hub = await opened()
  const time = createVirtualEnvironment()
  let rejections = 0
  let isOpen = false
  const picky: Hub = {
    ...hub,
    async publishBatch(messages) {
      if (isOpen) return hub.publishBatch(messages)
      rejections += 1
      throw new RejoinError('The data does not match the schema.', { code: 'invalid-event' })
    },
  }
  const feed = createFeed({ hub: picky, channel: 'mdns/_http._tcp', timing: time, current: () => [found('now')] })
  feed.say([found('now')])
  await time.advance(10_000)
  expect(rejections).toBeGreaterThan(5)
  expect(rejections).toBeLessThan(15)
  isOpen = true
  await time.advance(2000)
  expect((await feed.known()).map(({ fact }) => fact.service.name)).toEqual(['now'])
})
