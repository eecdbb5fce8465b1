import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { proxyKindNames } from '../../support/proxies/kinds.ts'
import { checkConfiguration, shippedConfiguration } from '../../support/proxies/proxy.ts'
import { until } from '../../support/until.ts'
import { whyNoNamespaces } from '../mdns/link.ts'
import { type Crowd, type CrowdReader, openCrowd } from './crowd.ts'
import { type Fleet, startCompose, startDeployment, startUnits } from './fleets.ts'

const fleets: [name: string, start: () => Promise<Fleet>, whyNot: string | undefined][] = [
  ...proxyKindNames.map((name): (typeof fleets)[number] => [name, () => startUnits(name), undefined]),
  ['compose', startCompose, whyNoNamespaces()],
  ['kubernetes', startDeployment, undefined],
]

// As browsers and services that do not retry: what they were answered is what their users would have seen.
describe.for(fleets)('two hubs replaced with the commands of the guide: %s', ([name, start, whyNot]) => {
  let fleet: Fleet | undefined
  let crowd: Crowd
  beforeAll(async () => {
    if (whyNot) return
    fleet = await start()
    crowd = openCrowd(fleet.url, name, fleet.addressOf)
    await until('all readers are connected', () => crowd.readers.every(({ isConnected }) => isConnected), 30_000)
    const stop = crowd.startPublishing()
    await fleet.replaceHubs()
    await stop()
    await until(
      'all readers have returned and have as many events as were acknowledged',
      () => crowd.readers.every((reader) => reader.got.length === acknowledgedTo(reader).length),
      30_000,
    ).catch(() => undefined)
  }, 180_000)
  afterAll(async () => {
    crowd?.close()
    await fleet?.stop()
  }, 60_000)

  const acknowledgedTo = ({ channel }: CrowdReader) => crowd.acknowledged.get(channel) ?? []
  const named = whyNot ? test.skip : test

  named('every publish is answered with 201, without a retry', () => {
    expect(Object.fromEntries(crowd.publishes)).toEqual({ 201: expect.any(Number) })
    expect(crowd.publishes.get('201')).toBeGreaterThan(100)
  })

  named('every returning EventSource gets its stream, with status 200', () => {
    expect(Object.fromEntries(crowd.opens)).toEqual({ 200: expect.any(Number) })
    // Each of the 300 opens one, and returns at least once: its first hub was stopped.
    expect(crowd.opens.get('200')).toBeGreaterThanOrEqual(600)
  })

  named('no event is lost or doubled', () => {
    for (const reader of crowd.readers) {
      expect(reader.hadGap).toBe(false)
      expect([...reader.got].sort(byNumber)).toEqual(acknowledgedTo(reader).toSorted(byNumber))
    }
  })
})

test.each(proxyKindNames)('%s takes its configuration for two hubs', async (name) => {
  await checkConfiguration(name, shippedConfiguration(name, 'twoHubs'))
})

function byNumber(one: number, other: number): number {
  return one - other
}
