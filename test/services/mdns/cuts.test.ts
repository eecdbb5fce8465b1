import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { StreamReader } from '../../support/stream-reader.ts'
import { eventsOf, read, startHub, startResponder } from './hub.ts'
import { type Link, openLink, whyNoNamespaces } from './link.ts'

// REJOIN_TEST_MDNS_CUTS=100 is the long run.
const cuts = Number(process.env.REJOIN_TEST_MDNS_CUTS ?? 20)
const why = whyNoNamespaces()
const isOptional = why !== undefined && process.env.CI !== 'true'

describe.skipIf(isOptional)(
  `cuts, in network namespaces${isOptional ? `, which cannot be made here: ${why}` : ''}`,
  { timeout: 300_000 },
  () => {
    let link: Link
    beforeAll(async () => {
      link = await openLink()
    })
    afterAll(() => link.close())

    test(`a reader that is cut ${cuts} times gets every fact once, in order`, async () => {
      await startHub(link)
      const responder = await startResponder(link)
      const ports: number[] = []
      const last = 5 * cuts
      let reader = await read(link)
      await reader.until(({ frames }) => frames.length > 0)
      for (let port = 1; port <= last; port += 1) {
        await responder.announce({ name: 'busy', port })
        if (port % 5 > 0) continue
        // In the middle of whatever it is sent. A client that returns a dozen times at once without any gain is sent away.
        await reader.until(({ frames }) => frames.length > 1)
        reader.cut()
        ports.push(...portsOf(reader))
        const cursor = reader.frames.at(-1)?.id
        reader = await read(link, cursor)
        await reader.until(({ frames }) => frames.length > 0)
        expect(reader.frames[0]).toMatchObject({ type: 'hello', id: cursor, data: { resumed: true } })
      }
      // The last fact may have come to the reader that was cut last.
      await reader.until(() => ports.at(-1) === last || portsOf(reader).includes(last))
      ports.push(...portsOf(reader))
      expect(ports).toEqual(Array.from({ length: last }, (_, n) => n + 1))
    })

    test('an announcement is an event within half a second, 95 times of 100', async () => {
      await startHub(link)
      const responder = await startResponder(link)
      const reader = await read(link)
      await reader.until(({ frames }) => frames.length > 0)
      const tookMs: number[] = []
      for (let port = 1; port <= 100; port += 1) {
        const sentAt = performance.now()
        await responder.announce({ name: 'quick', port })
        await reader.until(({ frames }) => frames.some(({ data }) => data.port === port))
        tookMs.push(reader.frames.find(({ data }) => data.port === port)!.at - sentAt)
      }
      tookMs.sort((one, other) => one - other)
      console.log(`announcement to event: p50 ${tookMs[49]?.toFixed(1)} ms, p95 ${tookMs[94]?.toFixed(1)} ms`)
      expect(tookMs[94]).toBeLessThanOrEqual(500)
    })
  },
)

function portsOf(reader: StreamReader): number[] {
  return eventsOf(reader).map(({ data }) => data.port)
}
