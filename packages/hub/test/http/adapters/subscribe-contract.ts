import type { RequestListener } from 'node:http'
import { createHub, type Hub, type HubSource } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { describe, expect, test } from 'vitest'
import { serveListener, type TestServer } from '../../support/http-server.ts'
import { publish } from '../../support/publishing.ts'

/** Two streams at paths of the program's own. */
export interface Routes {
  /** Below this path, the rest of the path is the channel. */
  readonly wildcardAt: string
  /** The same, and a request may name more channels. */
  readonly moreAt: string
  /** At this path, `channels` are read. */
  readonly fixedAt: string
  readonly channels: () => Promise<string[]>
}

/** What every adapter's `subscribe` has to do. */
export function subscribeContract(
  serve: (hub: HubSource, routes: Routes) => RequestListener | Promise<RequestListener>,
): void {
  async function start(sourceOf: (hub: Hub) => HubSource = (hub) => hub): Promise<TestServer> {
    const hub = await createHub({ log: memoryLog() })
    const channels = async () => ['users/ada', 'news']
    return serveListener(
      hub,
      await serve(sourceOf(hub), { wildcardAt: '/live', moreAt: '/more', fixedAt: '/me/events', channels }),
    )
  }

  describe('a stream at a path of the program', () => {
    test('reads the channel that its path names, percent-decoded, and no other', async () => {
      const { hub, open } = await start()
      const stream = await open('/live/orders%2F42/r%C3%A4ume?channel=secret&added=secret&replay=9')
      await publish(hub, 'secret', 1)
      await publish(hub, 'orders/42/räume', 2)
      await stream.waitFor((events) => events.length === 2)
      expect(stream.events.slice(1).map(({ data }) => data)).toEqual(['2'])
      expect([...hub.admin.connections()].map(({ channels }) => channels)).toEqual([['orders/42/räume']])
    })

    test('reads those of the query, too, when the program lets it', async () => {
      const { hub, open } = await start()
      const stream = await open('/more/orders%2F42/r%C3%A4ume?channel=b&replay=9')
      await publish(hub, 'orders/42/räume', 1)
      await publish(hub, 'b', 2)
      await stream.waitFor((events) => events.length === 3)
      expect(stream.events.slice(1).map(({ data }) => data)).toEqual(['1', '2'])
    })

    test('tells its reader to return while its hub cannot be opened, and is there when it can', async () => {
      let isLocked = true
      const { hub, open, url } = await start((hub) => async () => {
        if (isLocked) throw new Error('locked')
        return hub
      })
      const native = await open('/live/a')
      await native.ended
      expect(native.text).toContain('event: close\ndata: {"reason":"log-unavailable"}')
      const answer = await fetch(url('/me/events?reject=status'))
      expect(answer.status).toBe(503)
      expect(Number(answer.headers.get('Retry-After'))).toBeGreaterThan(0)
      isLocked = false
      const stream = await open('/live/a')
      await stream.waitFor((events) => events[0]?.type === 'hello')
      expect(hub.readers('a')).toBe(1)
    })

    test('resumes like any other', async () => {
      const { hub, open } = await start()
      const [first] = await publish(hub, 'a', 1, 2)
      const stream = await open('/live/a', { 'Last-Event-ID': first as string })
      await stream.waitFor((events) => events.length === 2)
      expect(stream.events.map(({ data }) => data)).toEqual([expect.stringContaining('"resumed":true'), '2'])
    })

    test('is polled at its own address, for the same channels (§4.14)', async () => {
      const { hub, url } = await start()
      const poll = async (path: string) => (await fetch(url(path))).json()
      const { cursor } = await poll('/me/events?waitMs=0&channel=secret')
      const waiting = poll(`/me/events?waitMs=25000&channel=secret&lastEventId=${cursor}`)
      await publish(hub, 'secret', 1)
      await publish(hub, 'news', 2)
      const { events } = await waiting
      expect(events.map(({ type, data }: { type: string; data: string }) => type === 'message' && data)).toEqual([
        false,
        '2',
      ])
      expect((await fetch(url('/live/a//b?waitMs=0'))).status).toBe(400)
    })

    test('rejects a name that is none (§5.2)', async () => {
      const { open } = await start()
      expect((await open('/live/a//b')).status).toBe(400)
    })

    test('reads the channels that the program says, and the request has no say in it', async () => {
      const { hub, open } = await start()
      const stream = await open('/me/events?channel=secret&replay=9')
      await publish(hub, 'secret', 1)
      await publish(hub, 'users/ada', 2)
      await publish(hub, 'news', 3)
      await stream.waitFor((events) => events.length === 3)
      expect(stream.events.slice(1).map(({ data }) => data)).toEqual(['2', '3'])
    })
  })
}
