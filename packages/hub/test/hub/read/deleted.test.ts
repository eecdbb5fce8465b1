import { describe, expect, test } from 'vitest'
import { serveHub } from '../../support/http-server.ts'
import { publish } from '../../support/publishing.ts'
import { openHub } from '../../support/recorder.ts'

describe('a channel that is deleted (§5.8)', () => {
  test('closes the streams of its readers, and holds nothing any more', async () => {
    const { hub, environment, connect } = await openHub()
    await publish(hub, 'a', 1, 2)
    const reader = connect('a')
    const other = connect('b')
    await environment.settle()
    await hub.delete('a')
    await environment.settle()
    expect(reader.events.at(-1)).toMatchObject({ type: 'close', data: '{"reason":"finished"}' })
    expect(await hub.admin.window('a')).toMatchObject({ events: 0 })
    expect(other.ended).toBe(false)
    await expect(hub.publish('a', { data: 3 })).rejects.toMatchObject({ code: 'channel-ended' })
  })

  test('tells a reader that was behind of its gap, and hands it nothing of what was deleted', async () => {
    const { hub, environment, connect } = await openHub()
    const [first] = await publish(hub, 'a', 1, 2)
    await hub.delete('a')
    const reader = connect('a', { cursor: first as string })
    await environment.settle()
    expect(reader.events.map(({ type }) => type)).toEqual(['hello', 'sync-required', 'close'])
    expect(JSON.parse(reader.events[1]?.data ?? '')).toMatchObject({ reason: 'forced', channels: ['a'] })
  })

  test('does not close the stream of a reader that also reads other channels', async () => {
    const { hub, environment, connect } = await openHub()
    await hub.delete('a')
    const both = connect(['a', 'b'])
    await publish(hub, 'b', 1)
    await environment.settle()
    expect(both.data).toEqual(['1'])
    const { subscription } = both.session
    const asked = { subscription, start: { from: 'now' as const } }
    expect(await hub.port.admit(asked, { readsStatus: true })).toMatchObject({ kind: 'admitted' })
  })

  test('is recognised by a hub that knew the channel before', async () => {
    const { url, hub } = await serveHub()
    const ask = async () => (await fetch(`${url('')}/poll/a?waitMs=0`)).status
    expect(await ask()).toBe(200)
    await hub.end('a')
    expect(await ask()).toBe(200)
    await hub.delete('a')
    expect(await ask()).toBe(410)
  })
})

describe('over HTTP, a channel that was deleted', () => {
  test('answers 410 to readers that can read it, and 200 with close to a native EventSource', async () => {
    const { hub, url } = await serveHub()
    await publish(hub, 'a', 1)
    const rejected: unknown[] = []
    hub.on('reject', ({ status, reason }) => rejected.push([status, reason]))
    const deleted = await fetch(`${url('')}/channels/a`, { method: 'DELETE' })
    expect([deleted.status, await deleted.json()]).toEqual([200, { id: expect.any(String) }])
    for (const path of ['/events/a?reject=status', '/poll/a']) {
      const response = await fetch(`${url('')}${path}`)
      expect([response.status, await response.json()]).toMatchObject([410, { error: { code: 'channel-deleted' } }])
    }
    expect(rejected).toEqual([
      [410, 'channel-deleted'],
      [410, 'channel-deleted'],
    ])
    const native = await fetch(`${url('')}/events/a`)
    expect([native.status, await native.text()]).toEqual([200, expect.stringMatching(/event: close\ndata: .*finished/)])
  })

  test('is deleted by DELETE alone, by those who may publish to it', async () => {
    const { url } = await serveHub({}, { authorize: () => ({ subject: 'me', subscribe: ['*'], publish: ['mine/*'] }) })
    const remove = async (path: string) => (await fetch(`${url('')}${path}`, { method: 'DELETE' })).status
    expect((await fetch(`${url('')}/channels/mine/1`)).status).toBe(405)
    expect(await remove('/channels/yours')).toBe(403)
    expect(await remove('/channels/mine/1')).toBe(200)
    expect(await remove('/channels/mine/1')).toBe(200)
  })

  test('does not tell a reader without rights whether it was there', async () => {
    const { hub, url } = await serveHub({}, { authorize: () => ({ subject: 'me', subscribe: ['mine/*'] }) })
    await hub.delete('yours')
    expect((await fetch(`${url('')}/events/yours?reject=status`)).status).toBe(403)
  })
})
