import { createVirtualEnvironment } from '@rejoin/hub/testing'
import { type Position, ulid } from '@rejoin/protocol'
import { describe, expect, test } from 'vitest'
import { failedOverLog } from '../../support/failed-over-log.ts'
import { publish } from '../../support/publishing.ts'
import { openHub } from '../../support/recorder.ts'

const positionOf = (id: string) => (ulid().decode(id) as { position: Position }).position

describe('while another master takes over whose clock is behind (§2.3)', () => {
  test('a reader that asks for the last events is served, and the hub does not search for ever', async () => {
    const log = failedOverLog()
    const environment = createVirtualEnvironment()
    let looks = 0
    const now = () => {
      looks += 1
      if (looks > 100_000) throw new Error('it searches for ever')
      return environment.now()
    }
    const { hub, connect } = await openHub({ log: log.source, environment: { ...environment, now }, hotBytes: 1 })
    const ids: string[] = []
    for (let n = 1; n <= 5; n += 1) {
      ids.push(...(await publish(hub, 'a', n)))
      await environment.advance(10)
    }
    log.holdReads()
    const reader = connect('a', { start: { from: 'last', events: 2 } })
    await environment.settle()
    log.releaseReads()
    await environment.settle()
    log.failOver(positionOf(ids[0] as string))
    log.tell()
    // The search has come to the second event by then, which is later than all that the new master has.
    log.releaseReads()
    await environment.settle()
    log.tell({ channel: 'a', data: 'new' })
    await environment.settle()
    expect(reader.events.map(({ type, data }) => (type === 'hello' ? type : data))).toEqual(['hello', 'new'])
  })

  test('a reader with an unknown cursor is not given the values of one master at a position of the other', async () => {
    const log = failedOverLog()
    const { hub, environment, connect } = await openHub({ log: log.source, retain: ['a'] })
    const [first] = await publish(hub, 'a', 1, 2)
    log.holdReads()
    const reader = connect('a', { cursor: 'nonsense' })
    await environment.settle()
    log.failOver(positionOf(first as string))
    log.releaseReads()
    await environment.settle()
    log.tell()
    await environment.settle()
    log.releaseReads()
    await environment.settle()
    const told = reader.events.filter(({ type }) => type === 'sync-required').map(({ data }) => JSON.parse(data))
    expect(told).toMatchObject([{ reason: 'unknown-id', retained: [] }])
    expect((ulid().decode(reader.lastId) as { mark: unknown }).mark).toBe('AN0THER1')
    await hub.close()
  })

  test('an event that the old master still sends has the id that it got there', async () => {
    const log = failedOverLog()
    const { hub, environment, connect } = await openHub({ log: log.source })
    const [first] = await publish(hub, 'a', 1)
    const reader = connect('a')
    await environment.advance(10)
    log.failOver(positionOf(first as string))
    // Answered once the tail has come to where the new master would have put it.
    const published = publish(hub, 'a', 2)
    await environment.settle()
    expect(reader.data).toEqual(['2'])
    const { mark } = ulid().decode(reader.lastId) as { mark: unknown }
    expect(mark).toBe(log.oldEpoch)
    await hub.close()
    await published
  })

  test('a reader that got further on the old master gets nothing that the new one had by then (§4.6)', async () => {
    const log = failedOverLog()
    const { hub, environment, connect } = await openHub({ log: log.source })
    const [first] = await publish(hub, 'a', 1, 2)
    const reader = connect('a', { cursor: first as string })
    await environment.settle()
    expect(reader.data).toEqual(['2'])
    log.failOver(positionOf(first as string), 2)
    log.tell()
    await environment.settle()
    log.tell({ channel: 'a', data: 'older' }, { channel: 'a', data: 'than 2' })
    await environment.settle()
    log.tell({ channel: 'a', data: 'new' })
    await environment.settle()
    expect(reader.events.map(({ type, data }) => (type === 'message' ? data : type))).toEqual([
      ...['hello', '2', 'sync-required', 'new'],
    ])
    await hub.close()
  })
})
