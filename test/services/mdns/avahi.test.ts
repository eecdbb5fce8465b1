import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startAvahi } from './avahi.ts'
import { eventsOf, getJson, read, startHub, startResponder } from './hub.ts'
import { type Link, openLink, whyNoNamespaces } from './link.ts'

const why = whyNoNamespaces()
const isOptional = why !== undefined && process.env.CI !== 'true'

describe.skipIf(isOptional)(
  `services of Avahi, in network namespaces${isOptional ? `, which cannot be made here: ${why}` : ''}`,
  { timeout: 300_000 },
  () => {
    let link: Link
    beforeAll(async () => {
      link = await openLink()
    })
    afterAll(() => link.close())

    const has =
      (type: string, name: string) => (reader: { frames: readonly { type: string; data: { name?: string } }[] }) =>
        reader.frames.some((frame) => frame.type === type && frame.data.name === name)

    test('a service that is added, changed, withdrawn or takes itself back is told, with the same ids to five readers', async () => {
      await startHub(link)
      const readers = await Promise.all(Array.from({ length: 5 }, () => read(link)))
      await Promise.all(readers.map((reader) => reader.until(({ frames }) => frames.length > 0)))
      const avahi = await startAvahi(link, [{ name: 'first', port: 80, txt: 'path=/' }])
      onTestFinished(() => avahi.kill())
      const all = (type: string, name: string) => Promise.all(readers.map((reader) => reader.until(has(type, name))))
      await all('resolved', 'first')
      await avahi.announce({ name: 'second', port: 81 })
      await all('resolved', 'second')
      await avahi.announce({ name: 'second', port: 82, txt: 'v=2' })
      await Promise.all(
        readers.map((reader) => reader.until(({ frames }) => frames.some(({ data }) => data.port === 82))),
      )
      await avahi.withdraw('second')
      const isLast = (type: string, name: string) => (reader: Parameters<typeof eventsOf>[0]) => {
        const last = eventsOf(reader).findLast(({ data }) => data.name === name)
        return last?.type === type
      }
      await Promise.all(readers.map((reader) => reader.until(isLast('removed', 'second'))))
      await avahi.stop()
      await Promise.all(readers.map((reader) => reader.until(isLast('removed', 'first'))))
      const seen = readers.map((reader) =>
        eventsOf(reader).map(({ id, type, data }) => `${id} ${type} ${JSON.stringify(data)}`),
      )
      for (const each of seen) expect(each).toEqual(seen[0])
      expect(eventsOf(readers[0]!).find(({ type }) => type === 'resolved')?.data).toMatchObject({
        ...{
          type: '_http._tcp.local.',
          name: 'first',
          host: 'nas.local.',
          port: 80,
          ip: '10.213.77.1',
          txt: { path: '/' },
        },
      })
    })

    test('a service that is changed several times within a second is told as it is in the end', async () => {
      await startHub(link)
      const reader = await read(link)
      await reader.until(({ frames }) => frames.length > 0)
      const avahi = await startAvahi(link)
      onTestFinished(() => avahi.kill())
      for (const port of [81, 82, 83]) await avahi.announce({ name: 'restless', port })
      await reader.until(({ frames }) => frames.some(({ data }) => data.port === 83))
      expect(eventsOf(reader).at(-1)).toMatchObject({ type: 'resolved', data: { name: 'restless', port: 83 } })
    })

    test('two hundred services are each told, and a hub that starts again tells its readers and finds them all', async () => {
      const server = await startHub(link)
      const services = Array.from({ length: 200 }, (_, n) => ({ name: `nas-${n}`, port: 1000 + n }))
      const avahi = await startAvahi(link, services)
      onTestFinished(() => avahi.kill())
      const reader = await read(link)
      const names = (frames: readonly { data: { name: string } }[]) => new Set(frames.map(({ data }) => data.name))
      const isComplete = (each: Parameters<typeof eventsOf>[0]) =>
        names(eventsOf(each).filter(({ type }) => type === 'resolved')).size === 200
      await reader.until(isComplete)
      const facts = eventsOf(reader).map(({ type, data: { id, ...service } }) => JSON.stringify([type, service]))
      expect(new Set(facts).size).toBe(facts.length)
      expect(new Set(eventsOf(reader).map(({ id }) => id)).size).toBe(facts.length)
      const { id } = eventsOf(reader).at(-1) ?? {}
      await server.stop()
      await reader.ended
      await startHub(link)
      const back = await read(link, id)
      await back.until(({ frames }) => frames.some(({ type }) => type === 'sync-required'))
      expect(back.frames[1]?.data).toMatchObject({ reason: 'epoch', snapshotUrl: '/v1/mdns/browse?type=_http._tcp' })
      await back.until(isComplete)
      const browsed = await getJson(link, back.frames[1]?.data.snapshotUrl)
      expect((browsed.services as unknown[]).length).toBe(200)
    })

    test('a service whose responder is gone without a word is removed when its records expire', async () => {
      await startHub(link)
      const responder = await startResponder(link)
      const reader = await read(link)
      await reader.until(({ frames }) => frames.length > 0)
      await responder.announce({ name: 'short', port: 80, ttl: 2 })
      await reader.until(has('removed', 'short'))
      const [resolved, removed] = eventsOf(reader)
      expect([resolved?.type, removed?.type]).toEqual(['resolved', 'removed'])
    })

    test('a record that is announced a hundred times is one event, and an id from outside the window gets sync-required', async () => {
      await startHub(link, { REJOIN_MDNS_MAX_EVENTS: '3' })
      const responder = await startResponder(link)
      const reader = await read(link)
      await reader.until(({ frames }) => frames.length > 0)
      for (let n = 0; n < 100; n += 1) await responder.announce({ name: 'again', port: 80 })
      for (let port = 81; port <= 85; port += 1) await responder.announce({ name: 'again', port })
      await reader.until(({ frames }) => frames.some(({ data }) => data.port === 85))
      expect(eventsOf(reader).map(({ data }) => data.port)).toEqual([80, 81, 82, 83, 84, 85])
      const inside = await read(link, eventsOf(reader)[2]?.id)
      await inside.until(({ frames }) => frames.some(({ data }) => data.port === 85))
      expect(eventsOf(inside).map(({ data }) => data.port)).toEqual([83, 84, 85])
      const outside = await read(link, eventsOf(reader)[1]?.id)
      await outside.until(({ frames }) => frames.some(({ type }) => type === 'sync-required'))
      expect(outside.frames[1]?.data).toMatchObject({
        reason: 'expired',
        snapshotUrl: '/v1/mdns/browse?type=_http._tcp',
      })
    })
  },
)
