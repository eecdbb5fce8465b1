import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { generateKeyPair } from 'jose'
import { describe, expect, onTestFinished, test } from 'vitest'
import { send } from '../support/http.ts'
import { guarded, token } from './guarded.ts'

describe('while the key set cannot be read', () => {
  test('the browser’s EventSource is told in band to come back, because no other status lets it', async () => {
    const { url, headers } = await withoutKeys()
    const { status, headers: answer, text } = await send(url, '/events/orders/1', { headers })
    expect([status, answer['content-type']]).toEqual([200, 'text/event-stream; charset=utf-8'])
    expect(answer['cache-control']).toContain('no-store')
    expect(text).toMatch(/^retry: \d{4,5}\n/)
    expect(text).toContain('event: close\ndata: {"reason":"overloaded"}')
  })

  test.each(['/events/orders/1?reject=status', '/poll/orders/1'])('%s says when to ask again', async (path) => {
    const { url, headers } = await withoutKeys()
    const { status, headers: answer, text } = await send(url, path, { headers })
    expect([status, answer['retry-after'], JSON.parse(text).error.code]).toEqual([503, '1', 'unreachable'])
  })

  test('a publisher and somebody who wants a ticket learn when to try again', async () => {
    const { url, headers } = await withoutKeys()
    for (const path of ['/publish/orders/1', '/ticket']) {
      const { status, headers: answer } = await send(url, path, { method: 'POST', headers, body: 'x' })
      expect([status, answer['retry-after']]).toEqual([503, '1'])
    }
  })

  test('the operator is told of the rejection and of its reason', async () => {
    const { url, hub, headers } = await withoutKeys()
    const told: unknown[] = []
    hub.on('reject', ({ reason, status, channels }) => told.push({ reason, status, channels }))
    hub.on('error', ({ cause }) => told.push((cause as { code?: string }).code))
    await send(url, '/events/orders/1', { headers })
    expect(told).toEqual([{ reason: 'unreachable', status: 200, channels: ['orders/1'] }, 'unreachable'])
  })
})

/** A hub whose issuer answers with an error. */
async function withoutKeys() {
  const issuer = createServer((_request, response) => void response.writeHead(500).end()).listen(0, '127.0.0.1')
  await new Promise((resolve) => issuer.once('listening', resolve))
  onTestFinished(() => void issuer.close())
  const jwks = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/keys`
  const { url, hub } = await guarded({ jwt: [{ jwks, issuer: 'https://id.example', audience: 'rejoin' }] })
  const { privateKey } = await generateKeyPair('ES256')
  return { url, hub, headers: { authorization: `Bearer ${await token({}, privateKey, { alg: 'ES256' })}` } }
}
