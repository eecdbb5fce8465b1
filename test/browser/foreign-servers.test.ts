import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ConnectOptions, StreamState } from '@rejoin/client'
import type { Page } from 'playwright-core'
import { describe, expect, type TestContext, test } from 'vitest'
import { until } from './support/readers.ts'
import { sharedChromium } from './support/shared-chromium.ts'
import { openStage } from './support/stage.ts'

// Servers of event streams that are not hubs, on another origin than the page. Chromium's own EventSource says what is right.

const chromium = sharedChromium()

const types = ['message', 'hello', 'close', 'error', 'open', 'checkpoint', 'heartbeat', 'sync-required'] as const

describe.concurrent.each(['fetch', 'event-source'] as const)('through %s, a server that is not a hub', (transport) => {
  test.concurrent.for<[string, string]>([
    ['begins with an event `hello`', block('hello', '"hi"') + numbers(1, 10)],
    ['begins with an event `hello` that is JSON', block('hello', '{"requested":null,"server":"x"}') + numbers(1, 10)],
    ['sends `close` among its events', numbers(1, 5) + block('close', '{"reason":"done"}') + numbers(6, 10)],
    ['sends `close` with a word of a hub', numbers(1, 5) + block('close', '{"reason":"finished"}') + numbers(6, 10)],
    ['sends `error` and `open`', numbers(1, 5) + block('error', '"bad"') + block('open', '1') + numbers(6, 10)],
    ['sends `checkpoint` and `heartbeat`', block('checkpoint', '{}', 7) + block('heartbeat', '{}') + numbers(1, 10)],
    ['sends `sync-required`', numbers(1, 5) + block('sync-required', '{}') + numbers(6, 10)],
    ['numbers its events anew', numbers(1, 5, 1) + numbers(6, 10, 1)],
  ])('that %s is read as by the browser: every event, once, on one connection', async ([, text], context) => {
    const server = await openForeignServer(context, (_, response) => response.write(text + numbers(0, 0)))
    const { page } = await openStage(context, chromium.tabs)
    await listenToBoth(page, server.url, { transports: [transport] })
    await until(page, () => heard.native.at(-1) === 'message 0' && heard.ours.at(-1) === 'message 0')
    const { native, ours } = await page.evaluate(() => ({ native: heard.native, ours: heard.ours }))
    expect(ours).toEqual(native)
    expect(server.visits).toHaveLength(2)
  })
})

test.concurrent.for<[string, boolean]>([
  ['resumes by what it is sent', true],
  ['resumes nothing', false],
])(
  'of a server that answers no preflight and %s, a page gets as much as from EventSource',
  async ([, resumes], context) => {
    // Three events for each connection.
    const sent = new Map<string, number>()
    const server = await openForeignServer(context, ({ url = '', headers }, response) => {
      const { pathname, searchParams } = new URL(url, 'http://server')
      const cursor = headers['last-event-id'] ?? searchParams.get('lastEventId') ?? 0
      const last = resumes ? Number(cursor) : (sent.get(pathname) ?? 0)
      sent.set(pathname, last + 3)
      response.end(`retry: 50\n\n${numbers(last + 1, last + 3, last + 1)}`)
    })
    const { page } = await openStage(context, chromium.tabs)
    await listenToBoth(page, server.url, { retryMs: 50 })
    await until(page, () => heard.native.length >= 13 && heard.ours.length >= 13)
    const { native, ours } = await page.evaluate(() => ({ native: heard.native, ours: heard.ours }))
    expect(ours.slice(0, 13)).toEqual(native.slice(0, 13))
  },
)

test.concurrent('a server that allows Last-Event-ID gets it in the header, also after it was away', async (context) => {
  let isAway = false
  const server = await openForeignServer(
    context,
    (request, response) => (isAway ? request.socket.destroy() : response.write(numbers(1, 1, 1))),
    { preflight: (request, response) => (isAway ? request.socket.destroy() : allowed(request, response)) },
  )
  const { page } = await openStage(context, chromium.tabs)
  await listenToBoth(page, server.url, { retryMs: 50 })
  await until(page, () => heard.ours.length === 1)
  isAway = true
  server.cut()
  await until(page, () => ourStream.state.attempt > 2)
  isAway = false
  const before = server.visits.length
  await until(page, () => ourStream.state.state === 'connected')
  const [first] = server.visits.slice(before).filter(({ url }) => url?.startsWith('/ours'))
  expect(first?.headers['last-event-id']).toBe('1')
  expect(first?.url).not.toContain('lastEventId')
})

test.concurrent.for([
  'text/event-stream;charset=utf-8',
  'TEXT/Event-Stream ; x=1',
  'text/event-stream, text/event-stream',
  'text/html, text/event-stream',
  'text/event-stream, text/html',
  'text/event-streams',
  'application/x-ndjson',
  '',
])('a server that calls its stream %j is read if the browser reads it', async (contentType, context) => {
  // Chromium holds an answer without a type back until it has seen this much.
  const text = `:${' '.repeat(2000)}\n\n${numbers(1, 3)}`
  const server = await openForeignServer(context, (_, response) => response.write(text), { contentType })
  const { page } = await openStage(context, chromium.tabs)
  await listenToBoth(page, server.url, {})
  await until(page, () => heard.native.length === 3 || heard.source.readyState === EventSource.CLOSED)
  await until(page, () => heard.ours.length === 3 || ourStream.state.closeReason === 'wrong-content-type')
  const { native, ours } = await page.evaluate(() => ({ native: heard.native, ours: heard.ours }))
  expect(ours).toEqual(native)
})

test.concurrent.for(
  ['with spaces, "quotes" and: colons', 'žluťoučký 🐙', '\u00e9\u00ff', 'a\tb', 'x'.repeat(4000), '%2F+&=#?'].map(
    (id) => [id.slice(0, 40), id] as const,
  ),
)('the id %j is sent back as the browser sends it', async ([, id], context) => {
  const server = await openForeignServer(context, (_, response) => response.end(`retry: 50\nid: ${id}\ndata: 1\n\n`), {
    preflight: allowed,
  })
  const { page } = await openStage(context, chromium.tabs)
  await listenToBoth(page, server.url, { retryMs: 50 })
  const sentBy = (path: string) => {
    const returned = server.visits.filter(({ url }) => url?.startsWith(path))[1]
    const header = returned?.headers['last-event-id']
    if (typeof header === 'string') return Buffer.from(header, 'latin1').toString()
    return returned && new URL(returned.url!, 'http://server').searchParams.get('lastEventId')
  }
  await context.expect.poll(() => sentBy('/native')).toBe(id)
  await context.expect.poll(() => sentBy('/ours')).toBe(id)
})

test.concurrent('of a server that redirects to its stream, a page gets as much as from EventSource', async (context) => {
  const server = await openForeignServer(context, (_, response) => response.write(numbers(1, 3)))
  const { page } = await openStage(context, chromium.tabs)
  await listenToBoth(page, `${server.url}/redirect`, {})
  await until(page, () => heard.native.length === 3 && heard.ours.length === 3)
  const { native, ours } = await page.evaluate(() => ({ native: heard.native, ours: heard.ours }))
  expect(ours).toEqual(native)
})

test.concurrent('redirects in a loop are the reason that is shown, and no quick retries follow', async (context) => {
  const server = await openForeignServer(context, () => undefined)
  const { page } = await openStage(context, chromium.tabs)
  await listenToBoth(page, `${server.url}/loop`, {})
  await until(page, () => ourStream.state.closeReason === 'redirect')
  const { attempt, nextRetryAt } = await page.evaluate(() => ourStream.state)
  expect(attempt).toBe(1)
  expect(nextRetryAt! - Date.now()).toBeGreaterThan(2000)
})

test.concurrent.for<[string, string]>([
  ['nothing', ''],
  ['only a comment', ': welcome\n\n'],
  ['only a time', 'retry: 1000\n\n'],
])(
  'a quiet server that sends %s at first is connected and up to date within 40 s, and stays so',
  async ([, text], context) => {
    const server = await openForeignServer(context, (_, response) => response.write(text))
    const { page } = await openStage(context, chromium.tabs)
    await listenToBoth(page, server.url, {}, true)
    // A first silence, and a poll to see whether this is a hub.
    for (const [answers, ms] of [
      [1, 30_000],
      [2, 3000],
    ] as const) {
      await until(page, (answers) => ourAnswers === answers, answers)
      if (answers === 2) await until(page, () => ourStream.state.state === 'backoff')
      await page.evaluate((ms) => clock.advance(ms), ms)
      if (answers === 1) await page.evaluate(() => clock.advance(3000))
    }
    await until(page, () => ourStream.state.state === 'connected' && !ourStream.state.stale)
    const visits = server.visits.length
    for (let hour = 0; hour < 5; hour += 1) await page.evaluate(() => clock.advance(3_600_000))
    expect(await page.evaluate(() => ourStream.state)).toMatchObject({ state: 'connected', stale: false })
    expect(server.visits).toHaveLength(visits)
    server.write(numbers(1, 1))
    await until(page, () => heard.ours.length === 1)
  },
)

declare global {
  var heard: { native: string[]; ours: string[]; source: EventSource }
  var ourStream: { state: StreamState }
  var ourAnswers: number
  function readBoth(url: string, types: readonly string[], options: ConnectOptions, isTimed: boolean): void
}

/** Opens an `EventSource` and a stream of ours, each on a path of its own, and notes what they hear. */
async function listenToBoth(page: Page, url: string, options: ConnectOptions, isTimed = false): Promise<void> {
  await page.addScriptTag({ url: '/page/beside-native.js', type: 'module' })
  await until(page, () => 'readBoth' in globalThis)
  await page.evaluate(([url, types, options, isTimed]) => readBoth(url, types, options, isTimed), [
    url,
    types,
    options,
    isTimed,
  ] as const)
}

function numbers(first: number, last: number, firstId?: number): string {
  let text = ''
  for (let n = first; n <= last; n += 1) {
    text += block('message', `${n}`, firstId === undefined ? undefined : firstId + n - first)
  }
  return text
}

function block(type: string, data: string, id?: number): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${type}\ndata: ${data}\n\n`
}

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown

/**
 * A server as many samples have it: every page may read it, and it knows nothing of preflights. Below `/redirect` it
 * redirects to the rest of the path, below `/loop` to the same path.
 */
async function openForeignServer(
  context: TestContext,
  stream: Answer,
  { preflight = notAllowed, contentType = 'text/event-stream' }: { preflight?: Answer; contentType?: string } = {},
) {
  const open = new Set<ServerResponse>()
  const visits: IncomingMessage[] = []
  const server = createServer((request, response) => {
    if (request.method === 'OPTIONS') {
      response.setHeader('Access-Control-Allow-Origin', '*')
      preflight(request, response)
      return
    }
    response.setHeader('Access-Control-Allow-Origin', '*')
    const [, how, rest] = /^\/(redirect|loop)(\/.*)/.exec(request.url ?? '') ?? []
    if (how) {
      response.writeHead(302, { Location: how === 'loop' ? request.url : rest }).end()
      return
    }
    visits.push(request)
    open.add(response)
    if (contentType) response.setHeader('Content-Type', contentType)
    response.writeHead(200)
    response.flushHeaders()
    stream(request, response)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  context.onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    visits,
    write: (text: string) => {
      for (const response of open) response.write(text)
    },
    cut: () => {
      for (const response of open) response.destroy()
      open.clear()
    },
  }
}

function notAllowed(_: IncomingMessage, response: ServerResponse): void {
  response.writeHead(405).end()
}

function allowed(_: IncomingMessage, response: ServerResponse): void {
  response.writeHead(204, { 'Access-Control-Allow-Headers': 'Last-Event-ID' }).end()
}
