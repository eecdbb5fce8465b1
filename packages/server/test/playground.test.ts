import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { playgroundFiles } from '../src/playground/files.ts'
import { createPlainStream } from '../src/playground/plain-stream.ts'
import { refuse } from '../src/refusal.ts'
import { cutOff, open, send, serving, until } from './http.ts'

describe('the page', () => {
  test('runs its own scripts and nothing else', async () => {
    const { url } = await serving()
    const { status, headers, text } = await send(url, '/')
    expect(status).toBe(200)
    expect(headers['content-type']).toBe('text/html; charset=utf-8')
    expect(headers['x-content-type-options']).toBe('nosniff')
    const [, importMap = ''] = /<script type="importmap">([\s\S]*?)<\/script>/.exec(text) ?? []
    const hash = createHash('sha256').update(importMap).digest('base64')
    expect(headers['content-security-policy']).toContain(`script-src 'self' 'sha256-${hash}';`)
    expect(headers['content-security-policy']).toContain("default-src 'none';")
    expect(Object.keys(JSON.parse(importMap).imports)).toEqual(['@rejoin/client', '@rejoin/protocol'])
  })

  test('brings along the files it names', async () => {
    const { url } = await serving()
    const { text } = await send(url, '/')
    const named = [...text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path ?? '')
    expect(named).toEqual(['/playground/playground.css', '/playground/playground.js'])
    for (const path of [...named, '/playground/lane.js']) {
      const { status, headers } = await send(url, path)
      expect(status).toBe(200)
      expect(headers['content-type']).toBe(`text/${path.endsWith('.css') ? 'css' : 'javascript'}; charset=utf-8`)
    }
  })

  test('is not to be posted to', async () => {
    const { url } = await serving()
    const { status, headers } = await send(url, '/', { method: 'POST' })
    expect(status).toBe(405)
    expect(headers.allow).toBe('GET')
  })
})

describe('of the files of a package, only its modules are given out', () => {
  test('a module', async () => {
    const { status, headers, text } = await send(await fileServer(), '/client/index.js')
    expect([status, text]).toEqual([200, 'export {}'])
    expect(headers['content-type']).toBe('text/javascript; charset=utf-8')
  })

  test('a module that is not there', async () => {
    const { status, text } = await send(await fileServer(), '/client/absent.js')
    expect(status).toBe(404)
    expect(JSON.parse(text).error.message).toContain('npm run build')
  })

  test.each([
    '/client/',
    '/client/index.d.ts',
    '/client/index.js.map',
    '/client/.hidden.js',
    '/client/../secret.js',
    '/client/..%2fsecret.js',
    '/client/%2e%2e/secret.js',
    '/client/..\\secret.js',
    '/client//etc/passwd.js',
    '/client/./index.js',
    '/client/index.js%00.js',
    '/client/https://example.com/x.js',
    '/server/index.js',
    '/index.html',
  ])('not %s', async (path) => {
    const { status, text } = await send(await fileServer(), path)
    expect([status, text]).toEqual([404, expect.stringContaining('left to the next')])
  })
})

describe('the plain stream', () => {
  test('sends numbers to whoever is there, without ids', async () => {
    const { url } = await serving()
    const stream = await open(url, plain('aaaaaaaa'))
    expect(stream.headers['content-type']).toBe('text/event-stream')
    await until(stream, 'retry: 1000\n\n')
    await broadcast(url, 'aaaaaaaa', 7)
    expect(await until(stream, '\n\n')).toBe('data: 7\n\n')
  })

  test('keeps nothing for a reader that is away', async () => {
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

  test.each(['n=', 'n=1%0A%0Adata:', 'n=-1', 'n=1234567890', ''])('refuses ?%s as a number', async (query) => {
    const { url } = await serving()
    const { status, text } = await send(url, `${plain('aaaaaaaa')}&${query}`, { method: 'POST' })
    expect([status, JSON.parse(text).error.code]).toEqual([400, 'invalid-data'])
  })

  test.each(['', 'tab=', 'tab=short', 'tab=UPPERCASE', `tab=${'a'.repeat(33)}`])(
    'refuses ?%s as a tab',
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

  test.each(['0', '-1', '30001', '1.5', 'NaN', 'soon', ''])('of %s ms is refused', async (ms) => {
    const { url } = await serving()
    expect((await send(url, `/playground/cut?tab=${tab}&ms=${ms}`, { method: 'POST' })).status).toBe(400)
  })

  test('is not made by looking at it', async () => {
    const { url } = await serving()
    const { status, headers } = await send(url, `/playground/cut?tab=${tab}&ms=1`)
    expect([status, headers.allow]).toEqual([405, 'POST'])
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

/** The files of a made-up client beside a secret, behind a link that answers what the files leave. */
async function fileServer(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rejoin-files-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await mkdir(join(folder, 'client'))
  for (const file of ['index.js', 'index.d.ts', 'index.js.map', '.hidden.js']) {
    await writeFile(join(folder, 'client', file), 'export {}')
  }
  for (const file of ['secret.js', 'index.html']) await writeFile(join(folder, file), 'secret')
  const here = pathToFileURL(`${folder}/`)
  const files = playgroundFiles({ playground: here, client: new URL('client/', here), protocol: here })
  return listening((request, response) => {
    files(request, response, () => refuse(response, 404, 'not-found', 'left to the next'))
  })
}

async function listening(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
