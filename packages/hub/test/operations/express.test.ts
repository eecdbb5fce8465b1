import { createServer, type RequestListener } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { createHub } from '@rejoin/hub'
import { expressHandler } from '@rejoin/hub/express'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import {
  createLogLines,
  createMaintenance,
  type LogLine,
  reportsHandler,
  sseStateHandler,
} from '@rejoin/hub/operations'
import express from 'express'
import { describe, expect, onTestFinished, test } from 'vitest'

const express4: typeof express = createRequire(import.meta.url)('express-4')
const report = { event: 'sse_reconnect', attempt: 2, delay_ms: 1043.27, url: '/events/a?token=secret' }

async function parts() {
  const hub = await createHub({ log: memoryLog() })
  onTestFinished(() => hub.close())
  const written: LogLine[] = []
  const lines = createLogLines((line) => void written.push(line))
  lines.watch(hub)
  const maintenance = createMaintenance(hub)
  const linesOf = (event: string) => written.filter((line) => line.event === event)
  return {
    hub,
    lines,
    maintenance,
    linesOf,
    state: sseStateHandler(hub),
    reports: reportsHandler(hub, lines.reconnected),
  }
}

type Parts = Awaited<ReturnType<typeof parts>>

const servers: [string, (parts: Parts) => RequestListener][] = [
  ...(
    [
      ['Express 5', express],
      ['Express 4', express4],
    ] as const
  ).map(
    ([name, make]) =>
      [
        name,
        ({ hub, maintenance, state, reports }: Parts) => {
          const app = make()
          app.use(maintenance.handler)
          app.use(expressHandler(hub))
          app.get('/debug/sse-state', state)
          app.post('/log', reports)
          app.post('/parsed/log', make.json(), reports)
          return app as RequestListener
        },
      ] as [string, (parts: Parts) => RequestListener],
  ),
  [
    'Node alone',
    ({ hub, maintenance, state, reports }) => {
      const last = nodeHandler(hub)
      return (request, response) => {
        if (maintenance.rejects(request, response)) return
        if (request.url?.startsWith('/debug/sse-state')) state(request, response)
        else if (request.url?.endsWith('/log')) reports(request, response)
        else last(request, response)
      }
    },
  ],
]

describe.each(servers)('in an application of %s', (_, listener) => {
  async function serving() {
    const given = await parts()
    const server = createServer(listener(given))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      server.close()
      server.closeAllConnections()
    })
    return { ...given, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  }

  test('the debug endpoint shows what a channel holds and who reads it', async () => {
    const { url, hub } = await serving()
    const { id } = await hub.publish('orders/42', { data: 1 })
    const stream = await fetch(`${url}/events/orders/42`)
    const answer = await fetch(`${url}/debug/sse-state?channel=orders/42`)
    expect(answer.headers.get('content-type')).toContain('application/json')
    expect(await answer.json()).toMatchObject({
      channel: 'orders/42',
      length: 1,
      lastEntry: id,
      oldestIdInWindow: id,
      activeConnections: 1,
      entries: [{ id, type: 'message' }],
    })
    await stream.body?.cancel()
    for (const [query, advice] of [
      ['', 'Say which channel'],
      ['?channel=a&limit=0', 'Give 1 to 1000'],
      ['?channel=%0a', 'channel'],
    ]) {
      const rejected = await fetch(`${url}/debug/sse-state${query}`)
      expect([rejected.status, await rejected.text()]).toEqual([400, expect.stringContaining(advice as string)])
    }
  })

  test('a reader that comes, resumes and is rejected leaves the lines that rejoin serve writes', async () => {
    const { url, hub, maintenance, linesOf } = await serving()
    const { id } = await hub.publish('a', { data: 1 })
    await hub.publish('a', { data: 2 })
    const stream = await fetch(`${url}/events/a?lastEventId=${id}`, { headers: { 'user-agent': 'r\u00e9ader' } })
    const known = { channels: ['a'], client_ip: '127.0.0.1', user_agent: 'r\u00e9ader' }
    await expect.poll(() => linesOf('sse_replay')).toMatchObject([{ level: 'info', ...known, replayed_count: 1 }])
    expect(linesOf('sse_connect')).toMatchObject([{ level: 'info', ...known, last_event_id: id, resuming: true }])
    await stream.body?.cancel()
    await expect.poll(() => linesOf('sse_disconnect')).toHaveLength(1)
    maintenance.begin()
    await (await fetch(`${url}/events/a?channel=b`)).text()
    expect(linesOf('sse_reject')).toMatchObject([
      { level: 'warn', channels: ['a', 'b'], status: 200, reason: 'maintenance', client_ip: '127.0.0.1' },
    ])
  })

  test('a client’s reports are lines, without the secrets of their address, and nonsense is rejected', async () => {
    const { url, linesOf } = await serving()
    const send = (path: string, body: unknown) =>
      fetch(url + path, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      })
    for (const path of ['/log', '/parsed/log']) {
      expect((await send(path, report)).status).toBe(204)
      expect((await send(path, [report, report])).status).toBe(204)
      const rejected = await send(path, { ...report, delay_ms: 'long' })
      expect([rejected.status, await rejected.text()]).toEqual([
        400,
        expect.stringContaining('has to be a number from 0'),
      ])
    }
    expect(linesOf('sse_reconnect')).toHaveLength(6)
    expect(linesOf('sse_reconnect')[0]).toMatchObject({ attempt: 2, delay_ms: 1043, url: '/events/a' })
    for (let count = 6; count < 60; count += 1) await send('/log', report)
    expect((await send('/log', report)).status).toBe(429)
    expect((await fetch(`${url}/log`, { method: 'PUT' })).status).not.toBe(204)
  })

  test('maintenance closes streams with its reason, rejects readers softly, lets publishes through, and ends', async () => {
    const { url, maintenance } = await serving()
    const stream = await fetch(`${url}/events/a`)
    maintenance.begin({ retryAfterMs: 10_000, withinMs: 0 })
    const ended = await stream.text()
    expect(ended).toMatch(/^retry: 1[0-2]\d{3}$/m)
    expect(ended).toMatch(/^event: close\ndata: .*"reason":"maintenance"/m)
    const soft = await fetch(`${url}/events/a`)
    expect([soft.status, await soft.text()]).toEqual([200, expect.stringContaining('"reason":"maintenance"')])
    const polled = await fetch(`${url}/poll/a`)
    expect([polled.status, Number(polled.headers.get('retry-after'))]).toEqual([503, expect.any(Number)])
    await polled.text()
    const published = await fetch(`${url}/publish/a`, { method: 'POST', body: 'x' })
    expect(published.status).toBe(201)
    maintenance.end()
    const back = await fetch(`${url}/events/a?replay=1`)
    const reader = back.body?.pipeThrough(new TextDecoderStream()).getReader()
    let read = ''
    while (!read.includes('data: x')) read += (await reader?.read())?.value ?? ''
    await reader?.cancel()
  })
})
