import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { JsonText } from '@rejoin/hub/internal'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type SnapshotRule, snapshotsBy } from '../src/snapshots.ts'
import { send, serving } from './support/http.ts'

const call = { signal: new AbortController().signal }

describe('an address for clients (§4.6)', () => {
  const { snapshotUrl = () => 'none' } = by({
    '*': { url: 'https://any.example/state' },
    'orders/*': { url: 'https://shop.example/state/{channel}?v=1' },
    'orders/private/*': { webhook: 'http://127.0.0.1:1/' },
  })

  test.each<[channels: [string, ...string[]], address: string | undefined]>([
    [['orders/42'], 'https://shop.example/state/orders/42?v=1'],
    [['orders/a b&c'], 'https://shop.example/state/orders/a%20b%26c?v=1'],
    [['news', 'a b'], 'https://any.example/state?channel=news&channel=a%20b'],
    [['orders/1', 'orders/2'], undefined],
    [['orders/1', 'news'], undefined],
    [['orders/private/1'], undefined],
  ])('readers of %j get %s', (channels, address) => expect(snapshotUrl(channels)).toBe(address))
})

describe('a webhook', () => {
  test('is posted the channels, with its credentials, and its answer is the snapshot', async () => {
    const asked: unknown[] = []
    const webhook = await answering(async (request, response) => {
      asked.push([request.method, request.headers.authorization, JSON.parse(await bodyOf(request))])
      response.end('{"status":"shipped"}')
    })
    const { snapshot } = by({ 'orders/*': { webhook, authorization: 'Bearer secret' } })
    expect(await snapshot?.(['orders/42'], call)).toEqual(new JsonText('{"status":"shipped"}'))
    expect(asked).toEqual([['POST', 'Bearer secret', { channels: ['orders/42'] }]])
  })

  test('that has no state answers 204, and there is no snapshot', async () => {
    const webhook = await answering((_request, response) => response.writeHead(204).end())
    const warned = vi.fn()
    expect(await by({ '*': { webhook } }, warned).snapshot?.(['a'], call)).toBeUndefined()
    expect(warned).not.toHaveBeenCalled()
  })

  test.each<[string, RequestListener, string]>([
    ['fails', (_request, response) => response.writeHead(500).end(), 'it answered 500'],
    ['leads elsewhere', (_request, response) => response.writeHead(307, { Location: '/b' }).end(), 'it answered 307'],
    ['says no JSON', (_request, response) => response.end('state'), 'JSON'],
    ['says too much', (_request, response) => response.end(`"${'x'.repeat(200)}"`), 'over 100 bytes'],
    ['goes away', (request) => request.socket.destroy(), 'fetch failed'],
  ])('that %s costs the snapshot, and the operator is told once in a while', async (_what, answer, why) => {
    const webhook = await answering(answer)
    const warned = vi.fn()
    const { snapshot } = by({ '*': { webhook, maxBytes: 100 } }, warned)
    for (const channel of ['a', 'b', 'c']) expect(await snapshot?.([channel], call)).toBeUndefined()
    expect(warned.mock.calls).toEqual([[expect.stringContaining(why)]])
  })

  test('that takes too long is told to the operator, and one that nobody waits for is not', async () => {
    const webhook = await answering(() => undefined)
    const warned = vi.fn()
    const { snapshot } = by({ '*': { webhook } }, warned)
    const left = AbortSignal.abort()
    expect(await snapshot?.(['a'], { signal: left })).toBeUndefined()
    expect(warned).not.toHaveBeenCalled()
    const late = AbortSignal.timeout(1)
    expect(await snapshot?.(['a'], { signal: late })).toBeUndefined()
    expect(warned).toHaveBeenCalledOnce()
  })

  test('is asked over few connections, however many readers come and go (§4.6)', async () => {
    const open = new Set<unknown>()
    let most = 0
    const webhook = await answering((_request, response) => {
      open.add(response)
      most = Math.max(most, open.size)
      response.once('close', () => open.delete(response))
    })
    const { url, hub } = await serving({ hub: by({ '*': { webhook } }) })
    for (let round = 0; round < 3; round += 1) {
      const leave = new AbortController()
      const polls = Array.from({ length: 40 }, (_, n) =>
        fetch(`${url}/poll/news/${round}-${n}?lastEventId=unknown`, { signal: leave.signal }).catch(() => undefined),
      )
      // All of them wait for a snapshot, and the webhook has as many requests as it gets.
      await expect.poll(() => [...hub.admin.connections()].length).toBe(40)
      await expect.poll(() => open.size).toBeGreaterThanOrEqual(32)
      leave.abort()
      await Promise.all(polls)
      // Long before `snapshotTimeoutMs`, because nobody waits.
      await expect.poll(() => open.size, { timeout: 4000 }).toBe(0)
    }
    expect(most).toBe(32)
    expect((await send(url, '/healthz')).status).toBe(200)
  })

  test('is asked about nobody else’s channels', async () => {
    const asked = vi.fn<RequestListener>((_request, response) => void response.end('1'))
    const { snapshot } = by({ 'orders/*': { webhook: await answering(asked) } })
    expect(await snapshot?.(['news'], call)).toBeUndefined()
    expect(await snapshot?.(['orders/1', 'news'], call)).toBeUndefined()
    expect(asked).not.toHaveBeenCalled()
  })
})

function by(rules: Record<string, SnapshotRule>, onWarning: (message: string) => void = () => undefined) {
  return snapshotsBy(rules, onWarning)
}

async function answering(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/a`
}

async function bodyOf(request: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = []
  for await (const piece of request) pieces.push(piece)
  return Buffer.concat(pieces).toString()
}
