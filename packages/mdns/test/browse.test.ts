import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createVirtualEnvironment } from '@rejoin/hub/testing'
import { describe, expect, test } from 'vitest'
import { createBrowse } from '../src/browse.ts'
import type { DnsRecord, Query } from '../src/network.ts'
import type { Fact } from '../src/service.ts'
import { allTypes } from '../src/service-type.ts'
import { type Announced, announcement } from './support/announcement.ts'

const here = '10.0.0.7'

/** A browse of one type on virtual time. */
function browsing({ type = '_http._tcp.local.', maxServices = 2000 } = {}) {
  const time = createVirtualEnvironment()
  const facts: Fact[] = []
  const queries: Query[] = []
  const browse = createBrowse({
    type,
    timing: time,
    maxServices,
    ask: (query) => void queries.push(query),
    tell: (told) => void facts.push(...told),
  })
  browse.start()
  return {
    ...{ time, facts, queries, browse },
    announce: (announced?: Announced, sender = here) => browse.receive(announcement(announced), sender),
    receive: (records: DnsRecord[]) => browse.receive(records, here),
    /** The facts since the last call, as words. */
    news: () => facts.splice(0).map(wordsOf),
    /** The questions since the last call, as words. */
    asked: () => queries.splice(0).flatMap(({ questions }) => questions.map(({ name, type }) => `${type} ${name}`)),
  }
}

function wordsOf(fact: Fact): string {
  const { event, service } = fact
  return 'port' in service ? `${event} ${service.name} ${service.ip}:${service.port}` : `${event} ${service.name}`
}

function only(records: DnsRecord[], ...types: DnsRecord['type'][]): DnsRecord[] {
  return records.filter(({ type }) => types.includes(type))
}

test('a service that is announced is told in the same turn, with all that is known of it', () => {
  const { announce, facts } = browsing()
  announce({ addresses: ['fe80::1', '10.0.0.7', '2001:db8::1'], txt: ['path=/', 'v'] })
  expect(facts).toEqual([
    {
      event: 'resolved',
      service: {
        type: '_http._tcp.local.',
        name: 'My NAS',
        host: 'nas.local.',
        port: 80,
        ip: '10.0.0.7',
        addresses: ['10.0.0.7', '2001:db8::1', 'fe80::1'],
        txt: { path: '/', v: null },
      },
    },
  ])
})

test('a record that is announced a hundred times is told once', async () => {
  const { announce, news, time } = browsing()
  for (let n = 0; n < 100; n += 1) {
    announce()
    await time.advance(10)
  }
  expect(news()).toEqual(['resolved My NAS 10.0.0.7:80'])
})

test('a changed port, address or TXT is told, and nothing else is', async () => {
  const { announce, facts, news, time } = browsing()
  announce()
  await time.advance(2000)
  announce({ port: 81 })
  announce({ port: 81, txt: ['path=/new'] })
  expect(facts.at(-1)?.service).toMatchObject({ txt: { path: '/new' } })
  await time.advance(2000)
  announce({ port: 81, txt: ['path=/new'], addresses: ['10.0.0.8'] })
  announce({ port: 81, txt: ['PATH=/other', 'path=/new'].slice(1), addresses: ['10.0.0.8'] })
  expect(news()).toEqual([
    'resolved My NAS 10.0.0.7:80',
    'resolved My NAS 10.0.0.7:81',
    'resolved My NAS 10.0.0.7:81',
    'resolved My NAS 10.0.0.8:81',
  ])
})

test('names are the same in any case', () => {
  const { news, receive } = browsing()
  receive(announcement())
  receive(announcement({ name: 'MY nas', type: '_HTTP._tcp.LOCAL', host: 'NAS.local' }))
  expect(news()).toEqual(['resolved My NAS 10.0.0.7:80'])
})

test('a service that takes itself back is gone within half a second, and is told again when it is back', async () => {
  const { announce, news, time } = browsing()
  announce()
  announce({ ttl: 0 })
  await time.advance(500)
  announce()
  expect(news()).toEqual(['resolved My NAS 10.0.0.7:80', 'removed My NAS', 'resolved My NAS 10.0.0.7:80'])
})

test('a service that another responder still has is asked for, and stays', async () => {
  const { announce, news, asked, time } = browsing()
  announce()
  await time.advance(5000)
  asked()
  announce({ ttl: 0 })
  await time.advance(50)
  expect(asked()).toContain('PTR _http._tcp.local')
  announce()
  await time.advance(5000)
  expect(news()).toEqual(['resolved My NAS 10.0.0.7:80'])
})

test('a service that goes without a word is asked for four times before its end, and then gone', async () => {
  const { announce, news, asked, time } = browsing()
  announce({ ttl: 100 })
  await time.advance(79_000)
  asked()
  await time.advance(20_000)
  expect(asked().filter((question) => question === 'SRV My NAS._http._tcp.local')).toHaveLength(4)
  expect(news()).toEqual(['resolved My NAS 10.0.0.7:80'])
  await time.advance(1500)
  expect(news()).toEqual(['removed My NAS'])
})

test('a host that is gone takes its service with it, although the name lives longer', async () => {
  const { news, time, receive } = browsing()
  const records = announcement({ ttl: 4500 })
  receive(records.map((record) => (record.type === 'PTR' || record.type === 'TXT' ? record : { ...record, ttl: 120 })))
  await time.advance(125_000)
  expect(news()).toEqual(['resolved My NAS 10.0.0.7:80', 'removed My NAS'])
  receive(announcement())
  expect(news()).toEqual(['resolved My NAS 10.0.0.7:80'])
})

describe('records that come in several packets', () => {
  test('are one fact when the last has come', async () => {
    const { news, time, receive } = browsing()
    for (const type of ['SRV', 'PTR', 'A', 'TXT'] as const) {
      receive(only(announcement(), type))
      await time.advance(20)
    }
    receive(only(announcement(), 'A'))
    await time.advance(20)
    expect(news()).toEqual(['resolved My NAS 10.0.0.7:80'])
  })

  test('are asked for when they do not come', async () => {
    const { asked, time, receive } = browsing()
    await time.advance(3500)
    asked()
    receive(only(announcement(), 'PTR'))
    await time.advance(50)
    expect(asked()).toEqual(['SRV My NAS._http._tcp.local', 'TXT My NAS._http._tcp.local'])
    receive(only(announcement(), 'SRV'))
    await time.advance(1000)
    expect(asked()).toEqual(['TXT My NAS._http._tcp.local', 'A nas.local', 'AAAA nas.local'])
  })

  test('make a service found when only its name is known, and resolved when the rest has come', async () => {
    const { news, time, receive } = browsing()
    receive(only(announcement(), 'PTR'))
    await time.advance(300)
    expect(news()).toEqual(['found My NAS'])
    receive(announcement())
    receive(announcement({ ttl: 0 }))
    await time.advance(500)
    expect(news()).toEqual(['resolved My NAS 10.0.0.7:80', 'removed My NAS'])
  })

  test('are not waited for for ever: a service without TXT is resolved', async () => {
    const { news, time, asked, receive } = browsing()
    receive(only(announcement({ ttl: 4500 }), 'PTR', 'SRV', 'A'))
    await time.advance(300)
    expect(news()).toEqual(['resolved My NAS 10.0.0.7:80'])
    await time.advance(60_000)
    expect(asked().filter((question) => question.startsWith('TXT'))).toHaveLength(5)
  })
})

test('a browse asks at once, again after one second, and then less and less often', async () => {
  const { time, queries } = browsing()
  const times: number[] = []
  for (let second = 0; second < 40; second += 1) {
    await time.advance(1000)
    if (queries.splice(0).length > 0) times.push(second)
  }
  expect(times).toEqual([0, 1, 3, 7, 15, 31])
})

test('a question names the services that are known, so that they are not sent again', async () => {
  const { announce, queries, time } = browsing()
  announce({ ttl: 4500 })
  announce({ ttl: 4500, name: 'Printer 2.0' })
  await time.advance(200)
  const [query] = queries
  // A dot inside a name cannot be written back as it was.
  expect(query?.known.map(({ data }) => data)).toEqual(['My NAS._http._tcp.local'])
})

test('a name with a dot in it is kept alive by asking for its type', async () => {
  const { announce, asked, news, time } = browsing()
  announce({ name: 'Printer 2.0', ttl: 100 })
  await time.advance(79_000)
  asked()
  await time.advance(2000)
  expect(new Set(asked())).toEqual(new Set(['PTR _http._tcp.local', 'A nas.local']))
  announce({ name: 'Printer 2.0', ttl: 100 })
  await time.advance(50_000)
  expect(news()).toEqual(['resolved Printer 2.0 10.0.0.7:80'])
})

test('a name with a dot in it lives as long as its type names it, also when that answer has no other record', async () => {
  const { announce, receive, asked, news, time } = browsing()
  const [pointer, , , address] = announcement({ name: 'Printer 2.0', ttl: 100 }) as [DnsRecord, ...DnsRecord[]]
  announce({ name: 'Printer 2.0', ttl: 100 })
  for (let second = 0; second < 1000; second += 5) {
    await time.advance(5000)
    const questions = asked()
    if (questions.includes('PTR _http._tcp.local')) receive([pointer])
    if (questions.includes('A nas.local')) receive([address as DnsRecord])
  }
  expect(news()).toEqual(['resolved Printer 2.0 10.0.0.7:80'])
  await time.advance(101_000)
  expect(news()).toEqual(['removed Printer 2.0'])
})

test('records of other types and of unknown hosts are ignored', async () => {
  const { announce, news, time, receive } = browsing()
  announce({ type: '_ipp._tcp.local' })
  receive([{ type: 'A', name: 'other.local', ttl: 10, flush: true, data: '10.0.0.9' }])
  receive([{ type: 'PTR', name: '_http._tcp.local', ttl: 10, flush: false, data: '_http._tcp.local' }])
  await time.advance(1000)
  expect(news()).toEqual([])
})

test('a browse of service types finds types, and ignores names that are no type', async () => {
  const { news, time, receive } = browsing({ type: allTypes })
  for (const data of ['_http._tcp.local', '_IPP._tcp.local', 'nonsense', '_x._sctp.local']) {
    receive([{ type: 'PTR', name: '_services._dns-sd._udp.local', ttl: 10, flush: false, data }])
  }
  expect(news()).toEqual(['found _http._tcp.local.', 'found _ipp._tcp.local.'])
  await time.advance(11_000)
  expect(news()).toEqual(['removed _http._tcp.local.', 'removed _ipp._tcp.local.'])
})

test('services beyond maxServices are passed over, and the overflow is reported', () => {
  const { announce, browse, news } = browsing({ maxServices: 3 })
  for (let n = 0; n < 10; n += 1) announce({ name: `nas ${n}` }, `10.0.0.${n}`)
  expect(news()).toHaveLength(3)
  expect(browse.overflowed).toBe(true)
})

test('one machine can announce half of the services, and leaves room for the others', async () => {
  const { announce, browse, news, time } = browsing({ maxServices: 10 })
  for (let n = 0; n < 10; n += 1) announce({ name: `flood ${n}`, ttl: 10 }, '10.0.0.66')
  expect(news()).toHaveLength(5)
  expect(browse.overflowed).toBe(true)
  announce({ name: 'honest' }, '10.0.0.7')
  expect(news()).toEqual(['resolved honest 10.0.0.7:80'])
  await time.advance(11_000)
  expect(news()).toHaveLength(5)
  announce({ name: 'later' }, '10.0.0.66')
  expect(news()).toEqual(['resolved later 10.0.0.7:80'])
})

test('a name whose SRV records name a new host in every packet takes the memory of one', () => {
  const { announce, receive } = browsing()
  announce()
  const before = memoryInUse()
  for (let n = 0; n < 100_000; n += 1) {
    const target = `${n}.${'x'.repeat(200)}.local`
    receive([{ type: 'SRV', name: 'My NAS._http._tcp.local', ttl: 120, flush: true, data: { target, port: 80 } }])
    receive([{ type: 'A', name: target, ttl: 120, flush: true, data: '10.0.0.8' }])
  }
  expect(memoryInUse() - before).toBeLessThan(10e6)
})

test('a TXT record takes about the memory of its text, however many strings it has', () => {
  const { announce } = browsing()
  const txt = Array.from({ length: 3000 }, (_, n) => n.toString(36))
  const before = memoryInUse()
  for (let n = 0; n < 500; n += 1) announce({ name: `nas ${n}`, txt }, `10.0.${n % 9}.7`)
  expect(memoryInUse() - before).toBeLessThan(20e6)
})

test('TXT entries for which there is no room are left out, and the services are told without them', async () => {
  const { announce, browse, facts, time } = browsing({ maxServices: 2 })
  const txt = Array.from({ length: 30 }, (_, n) => `${n}=${'x'.repeat(120)}`)
  announce({ name: 'one', txt }, '10.0.0.1')
  announce({ name: 'two', txt }, '10.0.0.2')
  await time.advance(1000)
  expect(facts.map(({ service }) => 'txt' in service && Object.keys(service.txt).length)).toEqual([30, 0])
  expect(browse.overflowed).toBe(true)
})

test('a record costs work for the services that it is about, however many others there are', async () => {
  const { facts, time, receive } = browsing()
  let looks = 0
  const many = 500
  for (let n = 0; n < many; n += 1) {
    receive(
      announcement({ name: `nas ${n}`, ttl: 4500 }).map((record) => {
        if (record.type !== 'TXT') return record
        // A look at a service reads its TXT.
        const slice = (...range: number[]) => {
          looks += 1
          return record.data.slice(...range)
        }
        return { ...record, data: Object.assign([...record.data], { slice }) }
      }),
    )
    await time.advance(1)
  }
  expect(facts).toHaveLength(many)
  expect(looks).toBe(many)
  await time.advance(4_000_000)
  expect(looks).toBe(many)
})

test('the facts that hold now are the last of each service', async () => {
  const { announce, browse, time } = browsing()
  announce({ name: 'one', host: 'one.local' })
  announce({ name: 'two' })
  announce({ name: 'two', port: 81 })
  announce({ name: 'one', host: 'one.local', ttl: 0 })
  await time.advance(500)
  expect(browse.current().map(wordsOf)).toEqual(['resolved two 10.0.0.7:81'])
})

function memoryInUse(): number {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
  return process.memoryUsage().heapUsed
}
