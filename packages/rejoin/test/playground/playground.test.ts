import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { pageRoutes } from '../../src/http/page-routes.ts'
import { reject } from '../../src/http/rejection.ts'
import { type Route, serveRoutes } from '../../src/http/routes.ts'
import { createPlainStream } from '../../src/playground/plain-stream.ts'
import { cutOff, open, send, serving, until } from '../support/http.ts'

describe('the page', () => {
  test('is given out with a policy under which no script but its own runs', async () => {
    const { status, headers, text } = await send(await fileServer(), '/')
    expect([status, text]).toEqual([200, '<!doctype html>'])
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    })
  })

  test('brings along its scripts and styles, which never change under their names', async () => {
    const url = await fileServer()
    for (const [path, type] of [
      ['/pages/assets/page-A_b-9.js', 'text/javascript'],
      ['/pages/assets/page-A_b-9.css', 'text/css'],
    ] as const) {
      const { status, headers, text } = await send(url, path)
      expect([status, text]).toEqual([200, 'content'])
      expect(headers['content-type']).toBe(`${type}; charset=utf-8`)
      expect(headers['cache-control']).toContain('immutable')
    }
  })

  test('is sent zipped to those who can read that', async () => {
    const url = await fileServer()
    const response = await fetch(`${url}/pages/assets/page-A_b-9.js`, { headers: { 'Accept-Encoding': 'gzip' } })
    expect(response.headers.get('content-encoding')).toBe('gzip')
    expect(await response.text()).toBe('content')
  })

  test('says what to do when it has not been built', async () => {
    const files = await served(pageRoutes({ '/': 'absent.html' }, await builtFolder()))
    const url = await listening((request, response) => void files(request, response))
    for (const path of ['/', '/pages/assets/absent.js']) {
      const { status, text } = await send(url, path)
      expect(status).toBe(404)
      expect(JSON.parse(text).error.message).toContain('npm run build')
    }
  })

  test('is not to be posted to', async () => {
    const { url } = await serving()
    const { status, headers } = await send(url, '/', { method: 'POST' })
    expect(status).toBe(405)
    expect(headers.allow).toBe('GET')
  })

  test.each([
    '/playground.html',
    '/dashboard',
    '/pages/made-of.txt',
    '/pages/page.html',
    '/pages/assets/',
    '/pages/assets/page.js.map',
    '/pages/assets/.hidden.js',
    '/pages/assets/../secret.js',
    '/pages/assets/..%2fsecret.js',
    '/pages/assets/%2e%2e/secret.js',
    '/pages/assets/..\\secret.js',
    '/pages/assets//etc/passwd.js',
    '/pages/assets/./page-A_b-9.js',
    '/pages/assets/page.js%00.js',
    '/pages/assets/https://example.com/x.js',
    '/constructor',
  ])('is all that is given out: not %s', async (path) => {
    const { status, text } = await send(await fileServer(), path)
    expect([status, JSON.parse(text).error.code]).toEqual([404, 'not-found'])
  })
})

describe('the plain stream', () => {
  test('sends numbers to connected readers, without ids', async () => {
    const { url } = await serving()
    const stream = await open(url, plain('aaaaaaaa'))
    expect(stream.headers['content-type']).toBe('text/event-stream')
    await until(stream, 'retry: 1000\n\n')
    await broadcast(url, 'aaaaaaaa', 7)
    expect(await until(stream, '\n\n')).toBe('data: 7\n\n')
  })

  test('keeps nothing for a reader that is disconnected', async () => {
    const { url } = await serving()
    await broadcast(url, 'aaaaaaaa', 1)
    const stream = await open(url, plain('aaaaaaaa'))
    await until(stream, 'retry')
    await broadcast(url, 'aaaaaaaa', 2)
    expect(await until(stream, 'data')).toBe('data: 2\n\n')
  })

  test('does not mix tabs', async () => {
    const { url } = await serving()
    const stream = await open(url, plain('aaaaaaaa'))
    await until(stream, 'retry')
    await broadcast(url, 'bbbbbbbb', 1)
    await broadcast(url, 'aaaaaaaa', 2)
    expect(await until(stream, 'data')).toBe('data: 2\n\n')
  })

  test('is not written to once it has been ended', async () => {
    const stream = createPlainStream()
    const server = await listening((_request, response) => stream.subscribe('topic', response))
    const reader = await open(server, '/')
    await until(reader, 'retry')
    const rest = until(reader, 'data').catch((error: Error) => error.message)
    stream.close()
    stream.broadcast('topic', '1')
    expect(await rest).toContain('ended without "data"')
  })

  test.each(['n=', 'n=1%0A%0Adata:', 'n=-1', 'n=1234567890', ''])('rejects ?%s as a number', async (query) => {
    const { url } = await serving()
    const { status, text } = await send(url, `${plain('aaaaaaaa')}&${query}`, { method: 'POST' })
    expect([status, JSON.parse(text).error.code]).toEqual([400, 'invalid-data'])
  })

  test.each(['', 'tab=', 'tab=short', 'tab=UPPERCASE', `tab=${'a'.repeat(33)}`])(
    'rejects ?%s as a tab',
    async (query) => {
      const { url } = await serving()
      expect((await send(url, `/playground/plain?${query}`)).status).toBe(400)
      expect((await send(url, `/playground/cut?ms=1&${query}`, { method: 'POST' })).status).toBe(400)
    },
  )
})

describe('a cut', () => {
  const tab = 'aaaaaaaa'
  const streams = [
    `/events/playground/${tab}?tab=${tab}`,
    `/events?channel=x&tab=${tab}`,
    `/stream/x?tab=${tab}`,
    plain(tab),
  ]

  test.each(streams)('resets %s, which is open, and every new one until it is over', async (path) => {
    const { url } = await serving()
    const stream = await open(url, path)
    const broken = until(stream, 'the end').catch((error) => error)
    await cut(url, tab, 30_000)
    expect(await broken).toMatchObject({ code: 'ECONNRESET' })
    expect(await cutOff(url, path)).toMatchObject({ code: 'ECONNRESET' })
  })

  test('is over after its time', async () => {
    const { url } = await serving()
    await cut(url, tab, 30_000)
    // The later cut takes the place of the earlier one.
    await cut(url, tab, 1)
    const stream = await firstAnswer(url, plain(tab))
    await until(stream, 'retry')
  })

  test('leaves other tabs, other streams and publishing alone', async () => {
    const { url } = await serving()
    const other = await open(url, plain('bbbbbbbb'))
    const untagged = await open(url, '/events/demo')
    await cut(url, tab, 30_000)
    expect((await send(url, '/publish/demo', { method: 'POST', body: 'hello' })).status).toBe(201)
    await broadcast(url, tab, 1)
    await broadcast(url, 'bbbbbbbb', 1)
    await until(other, 'data: 1')
    await until(untagged, 'data: hello')
  })

  test.each(['0', '-1', '30001', '1.5', 'NaN', 'soon', ''])('of %s ms is rejected', async (ms) => {
    const { url } = await serving()
    expect((await send(url, `/playground/cut?tab=${tab}&ms=${ms}`, { method: 'POST' })).status).toBe(400)
  })

  test('is not made by looking at it', async () => {
    const { url } = await serving()
    const { status, headers } = await send(url, `/playground/cut?tab=${tab}&ms=1`)
    expect([status, headers.allow]).toEqual([405, 'POST'])
  })
})

describe('a restart', () => {
  const tab = 'aaaaaaaa'

  test('ends the streams of its tab as a hub does that is about to go, and no others', async () => {
    const { url } = await serving()
    const ours = await open(url, `/events/playground/${tab}?tab=${tab}`)
    const ourPlain = await open(url, plain(tab))
    const other = await open(url, '/events/playground/bbbbbbbb?tab=bbbbbbbb')
    await until(ours, 'hello')
    await until(ourPlain, 'retry')
    const ended = until(ourPlain, 'the end').catch((error: Error) => error.message)
    expect((await send(url, `/playground/restart?tab=${tab}`, { method: 'POST' })).status).toBe(204)
    expect(await until(ours, '"drain"')).toContain('event: close')
    expect(await ended).toContain('ended without')
    await send(url, '/publish/playground/bbbbbbbb', { method: 'POST', body: 'still here' })
    await until(other, 'still here')
  })
})

describe('too long an absence', () => {
  const tab = 'aaaaaaaa'

  test('is announced, with the latest number as the snapshot', async () => {
    const { url } = await serving()
    const publish = () => send(url, `/publish/playground/${tab}?type=number`, { method: 'POST', body: '1' })
    const { id } = JSON.parse((await publish()).text)
    await broadcast(url, tab, 41)
    await publish()
    expect((await send(url, `/playground/forget?tab=${tab}`, { method: 'POST' })).status).toBe(204)
    const told = await open(url, `/events/playground/${tab}`, { headers: { 'last-event-id': id } })
    expect(await until(told, 'snapshot')).toContain('"snapshot":{"latest":41}')
  })

  test('leaves the snapshots of other channels to their hook', async () => {
    const { url, hub } = await serving({ hub: { snapshot: ([channel]) => `state of ${channel}` } })
    const { id } = await hub.publish('orders', { text: 'one' })
    await hub.invalidate('orders')
    const told = await open(url, '/events/orders', { headers: { 'last-event-id': id } })
    expect(await until(told, 'snapshot')).toContain('"snapshot":"state of orders"')
  })
})

function plain(tab: string): string {
  return `/playground/plain?tab=${tab}`
}

async function broadcast(url: string, tab: string, number: number): Promise<void> {
  expect((await send(url, `${plain(tab)}&n=${number}`, { method: 'POST' })).status).toBe(204)
}

async function cut(url: string, tab: string, ms: number): Promise<void> {
  expect((await send(url, `/playground/cut?tab=${tab}&ms=${ms}`, { method: 'POST' })).status).toBe(204)
}

/** Tries until the server answers; the limit of the test bounds it. */
async function firstAnswer(url: string, path: string): ReturnType<typeof open> {
  return open(url, path).catch(() => firstAnswer(url, path))
}

/** Pages as a build leaves them, beside a secret. */
async function builtFolder(): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'rejoin-files-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await mkdir(join(folder, 'assets'))
  await writeFile(join(folder, 'page.html'), '<!doctype html>')
  for (const file of ['page-A_b-9.js', 'page-A_b-9.css', 'page.js.map', '.hidden.js']) {
    await writeFile(join(folder, 'assets', file), 'content')
  }
  for (const file of ['secret.js', 'made-of.txt']) await writeFile(join(folder, file), 'secret')
  return pathToFileURL(`${folder}/`)
}

/** Those files, before a link that answers what they leave. */
async function fileServer(): Promise<string> {
  const files = await served(pageRoutes({ '/': 'page.html' }, await builtFolder()))
  return listening((request, response) => {
    if (!files(request, response)) reject(response, 'not-found', 'left to the next')
  })
}

async function served(routes: readonly Route[]) {
  const hub = await createHub({ log: memoryLog() })
  onTestFinished(() => hub.close())
  return serveRoutes(routes, { isAdmin: () => false, trustProxy: false, hub })
}

async function listening(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
