import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { checkNames, examine, type Report } from '@rejoin/doctor'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { describe, test } from 'vitest'
import { serve } from '../../src/serve.ts'

// Side by side: each takes the six seconds of silence that the doctor listens to.
describe.concurrent('the doctor', () => {
  test('finds nothing wrong with a hub that nothing stands in front of', async ({ expect, onTestFinished }) => {
    const { url, close } = await serve({ port: 0 })
    onTestFinished(() => close())
    const waiting: number[] = []
    const report = await examine(url, {
      origin: 'http://127.0.0.1:3000',
      onProgress: (left) => waiting.push(left.length),
    })
    expect(report).toMatchObject({ address: url, server: { kind: 'program' } })
    expect(statesOf(report)).toEqual({
      ...Object.fromEntries(checkNames.filter((name) => name !== 'idle').map((name) => [name, 'good'])),
    })
    expect(waiting.at(-1)).toBe(0)
  })

  test('takes the address of a stream, and finds the hub below a path', async ({ expect, onTestFinished }) => {
    const { url, close } = await serve({ port: 0 })
    onTestFinished(() => close())
    const report = await examine(`${url}/events/orders/42?type=a`)
    expect(report.address).toBe(url)
    expect(faultsOf(report)).toEqual([])
  })

  test('keeps a quiet stream open for as long as it is told', async ({ expect, onTestFinished }) => {
    const { url, close } = await serve({ port: 0, hub: { heartbeatMs: 1000 } })
    onTestFinished(() => close())
    const { checks } = await examine(url, { idleMs: 7000 })
    const idle = checks.find(({ name }) => name === 'idle')
    expect(idle?.state).toBe('good')
    expect(idle?.figures?.heartbeats).toBeGreaterThan(1)
  })

  test('tells of a hub without probes what its greeting shows', async ({ expect, onTestFinished }) => {
    const hub = await createHub({ log: memoryLog() })
    const url = await listening(nodeHandler(hub), onTestFinished)
    onTestFinished(() => hub.close())
    const report = await examine(`${url}/events/demo`)
    expect(report.server.kind).toBe('hub')
    expect(faultsOf(report)).toEqual([])
    expect(statesOf(report)).toMatchObject({
      stream: 'good',
      'header-cursor': 'good',
      'query-cursor': 'good',
      caching: 'good',
      disconnect: 'unknown',
    })
  })

  test('says of another server what can be seen from outside', async ({ expect, onTestFinished }) => {
    const url = await listening((request, response) => {
      if (request.url !== '/live') return void response.writeHead(404).end()
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      const timer = setInterval(() => response.write('data: 1\n\n: alive\n\n'), 200)
      response.on('close', () => clearInterval(timer))
    }, onTestFinished)
    const report = await examine(`${url}/live`, { origin: 'https://app.example' })
    expect(report.server.kind).toBe('other')
    expect(faultsOf(report)).toEqual(['cors'])
    expect(statesOf(report)).toMatchObject({
      stream: 'good',
      ids: 'hint',
      heartbeats: 'good',
      caching: 'hint',
      compression: 'good',
      'header-cursor': 'unknown',
    })
  })

  test('says what it was that answered, when it is no stream', async ({ expect, onTestFinished }) => {
    const url = await listening((_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/html' }).end('<form>')
    }, onTestFinished)
    await expect(examine(`${url}/events/demo`)).rejects.toMatchObject({
      code: 'not-found',
      message: expect.stringContaining('is no event stream: it answers with status 200 and text/html'),
    })
  })

  test('tells a server that ends its stream from a proxy that cuts it', async ({ expect, onTestFinished }) => {
    const url = await listening((request, response) => {
      if (!request.url?.startsWith('/live')) return void response.writeHead(404).end()
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('id: 1\ndata: 1\n\n')
      if (request.url === '/live/ended') response.end()
      else setImmediate(() => response.destroy())
    }, onTestFinished)
    const silenceOf = ({ checks }: Report) => checks.find(({ name }) => name === 'silence')
    const ended = await examine(`${url}/live/ended`)
    expect(silenceOf(ended)).toMatchObject({ state: 'hint', remedy: { culprit: 'the server itself' } })
    expect(ended.checks.find(({ name }) => name === 'stream')?.summary).toMatch(/ 1 event within \d\.\d s$/)
    const cut = await examine(`${url}/live/cut`)
    expect(silenceOf(cut)?.remedy?.culprit).toBe('a proxy between you and the hub')
  })

  test('passes on why the hub rejects the probe', async ({ expect, onTestFinished }) => {
    const { url, close } = await serve({ port: 0, access: { anonymous: { subscribe: ['*'] }, hosts: ['hub.example'] } })
    onTestFinished(() => close())
    await expect(examine(url)).rejects.toMatchObject({
      code: 'forbidden',
      message: expect.stringMatching(/rejects the probe: This hub is not addressed as "127\.0\.0\.1"/),
    })
  })

  test('carries a token to no other origin', async ({ expect, onTestFinished }) => {
    const seen: (string | undefined)[] = []
    const elsewhere = await listening((request, response) => {
      seen.push(request.headers.authorization)
      response.writeHead(404).end()
    }, onTestFinished)
    const url = await listening((request, response) => {
      response.writeHead(307, { location: `${elsewhere}${request.url}` }).end()
    }, onTestFinished)
    await expect(examine(url, { token: 'a-secret' })).rejects.toMatchObject({ code: 'not-found' })
    expect(seen).toEqual([undefined, undefined])
  })

  test('says when the hub lets no reader in', async ({ expect, onTestFinished }) => {
    const { url, adminUrl, close } = await serve({ port: 0, admin: { port: 0 } })
    onTestFinished(() => close())
    await fetch(`${adminUrl}/admin/maintenance`, { method: 'POST', body: '{"on":true,"retryAfterMs":1000}' })
    await expect(examine(url)).rejects.toMatchObject({ code: 'overloaded', retryable: true })
  })
})

function statesOf({ checks }: Report): Record<string, string> {
  return Object.fromEntries(checks.map(({ name, state }) => [name, state]))
}

function faultsOf({ checks }: Report): string[] {
  return checks.filter(({ state }) => state === 'fault').map(({ name }) => name)
}

async function listening(listener: RequestListener, onFinished: (close: () => void) => void): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
