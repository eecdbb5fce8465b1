import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../src/index.ts'
import type { TransportName } from '../src/stream-state.ts'
import { hello } from './support/scripted-server.ts'
import { clock, opened, retried, server, start, stateOf, useStage } from './support/stage.ts'

useStage()

const json = { 'content-type': 'application/json; charset=utf-8' }
const rejectionWith = (message: unknown) => JSON.stringify({ error: { code: 'forbidden', message } })

describe.each<TransportName>(['fetch', 'long-poll'])('a stream that a hub rejects, through %s', (transport) => {
  test.each([
    ['without a token', {}, 'unauthorized', /^This hub wants to know who you are\. Send a valid token\.$/],
    ['whose rights do not cover the channel', { token: 'reader' }, 'http-403', /^You may not use this channel/],
  ])('%s shows why, in the words of the hub', async (_, options, closeReason, words) => {
    const url = await guardedHub()
    const stream = connect(url, { ...options, transports: [transport] })
    opened.push(stream)
    const { closeMessage, ...state } = await stateOf(stream, 'closed')
    expect(state).toMatchObject({ closeReason })
    expect(closeMessage).toMatch(words)
  })
})

describe('the reason of a rejection with Retry-After', () => {
  test.each([
    ['maintenance', 'maintenance'],
    ['log-unavailable', 'log-unavailable'],
    ['no reason of a hub', 'overloaded'],
  ])('is that of the hub: %s', async (reason, closeReason) => {
    const { stream } = start()
    const first = await server.visit()
    first.answer(503, { ...json, 'retry-after': '7' })
    first.write(JSON.stringify({ error: { code: 'overloaded', reason, message: 'Later.' } }))
    first.end()
    expect(await stateOf(stream, 'backoff')).toMatchObject({ closeReason, closeMessage: 'Later.' })
  })
})

describe('the words of a rejection', () => {
  test('stand beside the reason while a stream waits to return, and are gone with the next request', async () => {
    const { stream } = start()
    const first = await server.visit()
    first.answer(503, { ...json, 'retry-after': '7' })
    first.write(rejectionWith('This hub is in maintenance.'))
    first.end()
    expect(await stateOf(stream, 'backoff')).toMatchObject({
      closeReason: 'overloaded',
      closeMessage: 'This hub is in maintenance.',
    })
    await retried(stream)
    expect(stream.state).toMatchObject({ state: 'connecting', closeReason: null, closeMessage: null })
    ;(await server.stream()).send(...hello())
    expect(await stateOf(stream, 'connected')).toMatchObject({ closeMessage: null })
  })

  test('are not shown when other credentials were let in', async () => {
    const shown: unknown[] = []
    const { stream } = start({ token: ({ refresh }) => (refresh ? 'second' : 'first') })
    stream.onState(({ closeMessage }) => shown.push(closeMessage))
    const first = await server.visit()
    first.answer(401, json)
    first.write(rejectionWith('Your token is over.'))
    first.end()
    const second = await server.stream()
    second.send(...hello())
    await stateOf(stream, 'connected')
    expect(second.headers.authorization).toBe('Bearer second')
    expect(new Set(shown)).toEqual(new Set([null]))
  })

  test.each([
    ['a page', { 'content-type': 'text/html' }, '<p>Forbidden</p>'],
    ['JSON of another server', json, '{"error":"forbidden","message":"No."}'],
    ['JSON that is no object', json, 'null'],
    ['a message that is no text', json, rejectionWith({ en: 'No.' })],
    ['a body that was cut', json, rejectionWith('No.').slice(0, 30)],
    ['nothing', json, ''],
  ])('are none when the answer is %s', async (_, headers, body) => {
    const { stream } = start()
    const visit = await server.visit()
    visit.answer(403, headers)
    visit.write(body)
    visit.end()
    expect(await stateOf(stream, 'closed')).toMatchObject({ closeReason: 'http-403', closeMessage: null })
    expect(clock.timers()).toEqual([])
  })

  test('are waited for no longer than 2 s', async () => {
    const { stream } = start()
    const visit = await server.visit()
    visit.answer(403, json)
    visit.write('{"error":')
    await vi.waitFor(() => expect(clock.timers()).toContain(2000))
    clock.advance(2000)
    expect(await stateOf(stream, 'closed')).toMatchObject({ closeReason: 'http-403', closeMessage: null })
    await visit.gone
    expect(clock.timers()).toEqual([])
  })

  test('are read no further than a few kilobytes, however much a server sends', async () => {
    const { stream } = start()
    const visit = await server.visit()
    visit.answer(403, json)
    visit.write(rejectionWith('x'.repeat(5000)).slice(0, -2))
    expect(await stateOf(stream, 'closed')).toMatchObject({ closeReason: 'http-403', closeMessage: null })
    await visit.gone
  })

  test('do not keep a stream that is closed meanwhile', async () => {
    const { stream } = start()
    const visit = await server.visit()
    visit.answer(403, json)
    visit.write('{"error":')
    await vi.waitFor(() => expect(clock.timers()).toContain(2000))
    stream.close()
    expect(stream.state).toMatchObject({ state: 'closed', closeReason: 'closed', closeMessage: null })
    await visit.gone
    await vi.waitFor(() => expect(clock.timers()).toEqual([]))
  })
})

/** A hub on which the token `reader` reads `news` alone. */
async function guardedHub(): Promise<string> {
  const hub = await createHub({ log: memoryLog() })
  const authorize = ({ headers }: IncomingMessage) =>
    headers.authorization === 'Bearer reader' ? { subject: 'reader', subscribe: ['news'], publish: [] } : null
  const http = createServer(nodeHandler(hub, { authorize }))
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await hub.close()
    http.closeAllConnections()
    await new Promise((resolve) => http.close(resolve))
  })
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}/events/orders`
}
