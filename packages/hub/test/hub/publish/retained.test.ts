import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { describe, expect, test } from 'vitest'
import { serveHub } from '../../support/http-server.ts'
import { openHub } from '../../support/recorder.ts'

const small = () => memoryLog({ window: { maxEvents: 1 } })

describe('a channel that retains its newest values (§5.9)', () => {
  test('gives a reader whose cursor has expired the newest event of each key, and then goes on', async () => {
    const { hub, environment, connect } = await openHub({ log: small(), hotBytes: 1, retain: ['prices/*'] })
    const reader = connect('prices/fx')
    await environment.settle()
    reader.session.disconnected()
    await hub.publish('prices/fx', { key: 'EUR', data: 1 })
    const gbp = await hub.publish('prices/fx', { key: 'GBP', type: 'tick', data: { mid: 2 } })
    const eur = await hub.publish('prices/fx', { key: 'EUR', data: 3 })
    await hub.publish('prices/fx', { key: 'USD', data: 4 })
    await hub.publish('prices/fx', { key: 'USD', data: 'no longer traded', forget: true })
    const returned = connect('prices/fx', { cursor: reader.lastId })
    await environment.settle()
    const sync = JSON.parse(returned.events.find(({ type }) => type === 'sync-required')?.data ?? '')
    expect(sync.retained).toEqual([
      { id: gbp.id, channel: 'prices/fx', key: 'GBP', type: 'tick', data: '{"mid":2}' },
      { id: eur.id, channel: 'prices/fx', key: 'EUR', type: 'message', data: '3' },
    ])
    await hub.publish('prices/fx', { key: 'EUR', data: 5 })
    await environment.settle()
    expect(returned.data).toEqual(['5'])
  })

  test('has one value when nobody names a key', async () => {
    const { hub, environment, connect } = await openHub({ log: small(), hotBytes: 1, retain: ['status'] })
    const { id } = await hub.publish('status', { data: 'red' })
    await hub.publish('status', { data: 'amber' })
    await hub.publish('status', { data: 'green' })
    const reader = connect('status', { cursor: id })
    await environment.settle()
    const sync = JSON.parse(reader.events.find(({ type }) => type === 'sync-required')?.data ?? '')
    expect(sync.retained.map(({ key, data }: { key: string; data: string }) => [key, data])).toEqual([['', '"green"']])
  })

  test('is not mixed up with others: a key for a channel that retains nothing is rejected', async () => {
    const { hub } = await openHub({ retain: ['prices/*'] })
    await expect(hub.publish('orders', { key: 'x', data: 1 })).rejects.toMatchObject({ code: 'invalid-event' })
    await expect(hub.publish('prices/1', { key: 'x', data: 1, live: true })).rejects.toMatchObject({
      code: 'invalid-event',
    })
    await expect(hub.publish('prices/1', { key: 'x'.repeat(257), data: 1 })).rejects.toMatchObject({
      code: 'invalid-event',
    })
  })

  test('tells values apart that were published under one Idempotency-Key (§5.5)', async () => {
    const { hub } = await openHub({ retain: ['prices'] })
    const once = { idempotencyKey: '1' }
    const { id } = await hub.publish('prices', { key: 'EUR', data: 1 }, once)
    expect((await hub.publish('prices', { key: 'EUR', data: 1 }, once)).id).toBe(id)
    for (const other of [{ key: 'GBP' }, { key: 'EUR', forget: true }, { live: true }]) {
      await expect(hub.publish('prices', { ...other, data: 1 }, once)).rejects.toMatchObject({ code: 'key-reused' })
    }
  })

  test('rejects a retain option that names no channel', async () => {
    await expect(createHub({ log: memoryLog(), retain: ['a*'] })).rejects.toMatchObject({ code: 'invalid-channel' })
  })

  test('is fed over HTTP as well', async () => {
    const { hub, url } = await serveHub({ retain: ['prices/*'] })
    const post = (path: string, body: unknown) =>
      fetch(url(path), { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } })
    expect((await post('/publish/prices/1?key=EUR', 1.08)).status).toBe(201)
    expect((await post('/publish', [{ channel: 'prices/1', key: 'GBP', data: 1.2 }])).status).toBe(201)
    expect((await post('/publish', { channel: 'prices/1', key: 'EUR', forget: true, data: null })).status).toBe(201)
    expect((await post('/publish', { channel: 'prices/1', key: 7, data: null })).status).toBe(400)
    expect((await post('/publish', { channel: 'prices/1', forget: 'yes', data: null })).status).toBe(400)
    const { events } = await hub.admin.window('prices/1')
    expect(events).toBe(3)
  })
})

describe('a live event (§5.10)', () => {
  test('reaches connected readers, in order, and no reader that comes later', async () => {
    const { hub, environment, connect } = await openHub()
    const here = connect('a')
    await environment.settle()
    await hub.publish('a', { data: 1 })
    await hub.publish('a', { data: 'typing', live: true })
    await hub.publish('a', { data: 2 })
    await environment.settle()
    const first = here.events.find(({ data }) => data === '1')?.id as string
    const late = connect('a', { cursor: first })
    await environment.settle()
    expect([here.data, late.data]).toEqual([['1', '"typing"', '2'], ['2']])
    expect(late.events.map(({ type }) => type)).not.toContain('sync-required')
  })

  test('has an id that is a cursor like any other', async () => {
    const { hub, environment, connect } = await openHub({ hotBytes: 1 })
    const { id } = await hub.publish('a', { data: 'typing', live: true })
    await hub.publish('a', { data: 1 })
    const reader = connect('a', { cursor: id })
    await environment.settle()
    expect([reader.events[0]?.type, reader.data]).toEqual(['hello', ['1']])
    expect(JSON.parse(reader.events[0]?.data ?? '').resumed).toBe(true)
  })

  test('is answered with the durability none', async () => {
    const { url } = await serveHub()
    const answer = async (path: string, body: string) => (await fetch(url(path), { method: 'POST', body })).json()
    expect(await answer('/publish/a?live', 'x')).toEqual({ id: expect.any(String), durability: 'none' })
    expect(await answer('/publish', '[{"channel":"a","data":1},{"channel":"a","data":2,"live":true}]')).toMatchObject({
      durability: 'none',
    })
    expect(await answer('/publish/a', 'x')).toMatchObject({ durability: 'memory' })
    expect(await answer('/publish/a?live=false', 'x')).toMatchObject({ durability: 'memory' })
  })
})
