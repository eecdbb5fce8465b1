import { describe, expect, test, vi } from 'vitest'
import { connect } from '../src/index.ts'
import { message } from './support/scripted-server.ts'
import { clock, deferred, opened, recorder, retried, server, start, stateOf, useStage } from './support/stage.ts'

useStage()

describe('requests', () => {
  test('name the stream and count its connections, so that a hub can end a dead one (§4.13)', async () => {
    const { stream } = start()
    start()
    const visits = [await server.visit(), await server.visit()]
    const [first, second] = visits.map(({ url }) => url.searchParams)
    expect(first?.get('clientId')).toMatch(/^0\.\d{5,}$/)
    expect(second?.get('clientId')).not.toBe(first?.get('clientId'))
    stream.reconnect()
    const { searchParams } = (await server.visit()).url
    expect([first, second].map((before) => before?.get('clientId'))).toContain(searchParams.get('clientId'))
    expect([first?.get('attempt'), searchParams.get('attempt')]).toEqual(['1', '2'])
  })

  test('name the stream also where the platform has no randomUUID, as on a page without TLS', async () => {
    vi.stubGlobal('crypto', {})
    start()
    expect(Number((await server.visit()).url.searchParams.get('clientId'))).toBeGreaterThan(0)
  })

  test('ask to be rejected by a status, which comes with the time to return (§4.12)', async () => {
    start()
    expect((await server.visit()).url.searchParams.get('reject')).toBe('status')
  })

  test('go to a signed URL as it is, by a fetch that keeps to it, and the cursor comes in the header', async () => {
    const signed = `${server.url}?key=a%20b+c~%7e&added=x&signature=%2F%3d`
    const stream = connect(signed, {
      clock,
      transports: ['fetch'],
      fetch: (_, init) => fetch(signed, init),
    })
    opened.push(stream)
    const events = recorder(stream)
    const first = await server.stream()
    first.send(...message('e1'))
    await events.until(1)
    first.cut()
    await retried(stream)
    const second = await server.visit()
    expect([first, second].map(({ url }) => url.search)).toEqual(Array(2).fill(new URL(signed).search))
    expect(second.headers['last-event-id']).toBe('e1')
  })

  test('ask for an event stream, and for no cache to keep it', async () => {
    start({ headers: { 'X-Shop': 'one', 'Last-Event-ID': 'not mine' } })
    const { headers } = await server.visit()
    expect(headers).toMatchObject({ accept: 'text/event-stream', 'cache-control': 'no-cache', 'x-shop': 'one' })
    expect(headers['last-event-id']).toBeUndefined()
  })

  test('carry headers that are made anew for each attempt', async () => {
    let token = 0
    const { stream } = start({ headers: async () => ({ Authorization: `Bearer ${++token}` }) })
    const first = await server.visit()
    expect(first.headers.authorization).toBe('Bearer 1')
    first.cut()
    await retried(stream)
    expect((await server.visit()).headers.authorization).toBe('Bearer 2')
  })

  test('whose headers cannot be made are tried again, and the failure is reported', async () => {
    const error = vi.spyOn(console, 'error').mockReturnValue()
    let failures = 1
    const { stream } = start({
      headers: () => {
        if (failures-- > 0) throw new Error('no token')
        return {}
      },
    })
    await retried(stream)
    await server.visit()
    expect(error).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ message: 'no token' }))
  })

  test('take cookies along as they are told to', async () => {
    const told: unknown[] = []
    start({
      credentials: 'include',
      fetch: (input, init) => {
        told.push(init?.credentials)
        return fetch(input, init)
      },
    })
    await server.visit()
    expect(told).toEqual(['include'])
  })

  test('end with the stream', async () => {
    const { stream } = start()
    const first = await server.stream()
    await stateOf(stream, 'connected')
    stream.close()
    await first.gone
    expect(clock.timers()).toEqual([])
  })

  test.each(['fetch', 'long-poll'] as const)(
    'of %s end with the stream also where a fetch of the user’s own does not pass the signal on',
    async (transport) => {
      const { stream } = start({
        transports: [transport],
        fetch: (input, { signal: _, ...init } = {}) => fetch(input, init),
      })
      const visit = await server.visit()
      visit.answer(200, { 'content-type': transport === 'fetch' ? 'text/event-stream' : 'application/json' })
      visit.write(transport === 'fetch' ? ': hi\n\n' : '{')
      await stateOf(stream, 'connected')
      stream.close()
      await visit.gone
    },
  )

  test('that a fetch of the user’s own answers after the stream was closed are cancelled', async () => {
    const { stream } = start({ fetch: (input, { signal: _, ...init } = {}) => fetch(input, init) })
    const visit = await server.visit()
    stream.close()
    visit.answer(200, { 'content-type': 'text/event-stream' })
    visit.send(': hi')
    await visit.gone
  })

  test('are not made once the headers function has closed the stream', async () => {
    const second = deferred<AbortSignal>()
    const { stream } = start({
      headers: () => {
        if (stream.state.attempt === 1) stream.close()
        return {}
      },
      fetch: (input, init) => {
        if (stream.state.attempt === 1) second.resolve(init!.signal!)
        return fetch(input, init)
      },
    })
    ;(await server.visit()).cut()
    await retried(stream)
    expect((await second.promise).aborted).toBe(true)
    expect(clock.timers()).toEqual([])
  })
})
