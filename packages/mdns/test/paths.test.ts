import { describe, expect, test } from 'vitest'
import { eventsOf, has, hasEvents, stage } from './support/stage.ts'

test('a browse gives the services that are there, and the cursor behind which everything follows', async () => {
  const { read, get, announce, time } = await stage()
  const reader = await read()
  await reader.until(has('hello'))
  await time.advance(2000)
  announce({ name: 'one' })
  announce({ name: 'two' })
  await reader.until(hasEvents(2))
  const { status, body } = await get('browse?type=http')
  expect(status).toBe(200)
  expect(body).toEqual({
    type: '_http._tcp.local.',
    cursor: expect.any(String),
    services: eventsOf(reader).map(({ id, data }) => ({ ...data, id, event: 'resolved' })),
    source: { healthy: true, silentMs: expect.any(Number), failure: null },
  })
  announce({ name: 'three' })
  const next = await read('type=http&idle_for=0', body.cursor)
  await next.until(hasEvents(1))
  expect(eventsOf(next).map(({ data }) => data.name)).toEqual(['three'])
})

test('a browse that is the first to ask waits for the answers', async () => {
  const { get, announce, network, whileTimePasses } = await stage()
  network.onAsk = () => announce()
  const browse = whileTimePasses(get('discover?type=_http._tcp'))
  expect((await browse).body.services).toMatchObject([{ name: 'My NAS', event: 'resolved' }])
})

test('a browse without a type gives the service types', async () => {
  const { get, mdns, network, time } = await stage()
  await mdns.watch('_services._dns-sd._udp')
  await time.advance(2000)
  network.answer({
    type: 'PTR',
    name: '_services._dns-sd._udp.local',
    ttl: 4500,
    flush: false,
    data: '_ipp._tcp.local',
  })
  const { body } = await get('browse')
  expect(body.services).toMatchObject([{ event: 'found', name: '_ipp._tcp.local.' }])
})

describe('resolve', () => {
  test('gives one service by its full name, also when it answers only then', async () => {
    const { get, announce, mdns } = await stage()
    const answer = get(`resolve?name=${encodeURIComponent('My NAS._http._tcp.local.')}`)
    await expect.poll(() => mdns.status().browses.length).toBe(1)
    announce({ name: 'other' })
    announce()
    expect(await answer).toMatchObject({ status: 200, body: { service: { name: 'My NAS', ip: '10.0.0.7', port: 80 } } })
  })

  test('finds a name in any case, as DNS does', async () => {
    const { get, announce, mdns } = await stage()
    const answer = get(`resolve?name=${encodeURIComponent('MY nas._HTTP._tcp.local')}`)
    await expect.poll(() => mdns.status().browses.length).toBe(1)
    announce()
    expect(await answer).toMatchObject({ status: 200, body: { service: { name: 'My NAS' } } })
  })

  test('says after five seconds that nobody has answered', async () => {
    const { get, whileTimePasses } = await stage()
    const answer = await whileTimePasses(get('resolve?name=x._http._tcp.local'))
    expect(answer).toMatchObject({ status: 504, body: { error: { code: 'resolve_timeout' } } })
  })
})

describe('a request that is wrong is told how', () => {
  test.each([
    ['events', 400, 'invalid_type'],
    ['events?type=_http._sctp', 400, 'invalid_type'],
    ['subscribe?type=%0a', 400, 'invalid_type'],
    ['browse?type=a.b.c', 400, 'invalid_type'],
    ['browse?type=%E2%84%AA', 400, 'invalid_type'],
    ['events?type=http&idle_for=soon', 400, 'invalid_idle_for'],
    ['events?type=http&idle_for=', 400, 'invalid_idle_for'],
    ['events?type=http&idle_for=-1', 400, 'invalid_idle_for'],
    ['events?type=http&idle_for=1e3', 400, 'invalid_idle_for'],
    ['events?type=http&idle_for=1000000', 400, 'invalid_idle_for'],
    ['resolve?name=My%20NAS', 400, 'invalid_name'],
    ['nothing', 404, 'not_found'],
  ])('%s', async (path, status, code) => {
    const { get } = await stage()
    expect(await get(path)).toEqual({ status, body: { error: { code, message: expect.stringMatching(/\.$/) } } })
  })

  test('by another method', async () => {
    const { get } = await stage()
    expect(await get('events?type=http', { method: 'POST' })).toMatchObject({
      status: 405,
      body: { error: { code: 'wrong-method' } },
    })
  })

  test('for more types than are followed at once, unless nobody needs one of them any more', async () => {
    const { get, mdns, time } = await stage({ maxTypes: 2 })
    const held = await mdns.watch('one')
    await mdns.watch('two')
    await time.advance(2000)
    expect(await get('events?type=three')).toMatchObject({ status: 503, body: { error: { code: 'overloaded' } } })
    held.close()
    const three = await mdns.watch('three')
    expect(mdns.status().browses.map(({ type }) => type)).toEqual(['_two._tcp.local.', '_three._tcp.local.'])
    three.close()
  })
})

test('only those may read who have the right to the channel of the type', async () => {
  const rights: Record<string, string[]> = { ada: ['mdns/*'], bob: ['mdns/_ipp._tcp'] }
  const { get, mdns, time } = await stage({
    authorize: ({ headers: { authorization: who = '' } }) =>
      who in rights ? { subject: who, subscribe: rights[who] ?? [], publish: [] } : null,
  })
  await mdns.watch('http')
  await time.advance(2000)
  const as = (who: string) => ({ headers: { authorization: who } })
  for (const path of ['events?type=http&idle_for=1', 'browse?type=http', 'resolve?name=x._http._tcp', 'status']) {
    expect(await get(path)).toMatchObject({ status: 401 })
    expect(await get(path, as('bob'))).toMatchObject({ status: 403 })
  }
  expect(await get('browse?type=http', as('ada'))).toMatchObject({ status: 200 })
  expect(await get('status', as('ada'))).toMatchObject({ status: 200 })
})

test('a network that is silent for 90 s is seen, and so is its return', async () => {
  const told: boolean[] = []
  const { get, mdns, announce, network, time } = await stage({ onHealth: ({ healthy }) => void told.push(healthy) })
  await time.advance(200_000)
  expect(mdns.status()).toMatchObject({ healthy: true, silentMs: 0 })
  await mdns.watch('http')
  await time.advance(85_000)
  expect(mdns.status().healthy).toBe(true)
  const probes = network.asked.filter(({ questions }) => questions[0]?.name === '_services._dns-sd._udp.local')
  expect(probes).toHaveLength(2)
  await time.advance(10_000)
  expect((await get('status')).body).toMatchObject({ healthy: false, browses: [{ type: '_http._tcp.local.' }] })
  expect((await get('browse?type=http')).body.source).toMatchObject({ healthy: false })
  announce()
  expect(mdns.status()).toMatchObject({ healthy: true, silentMs: 0 })
  expect(told).toEqual([false, true])
})
