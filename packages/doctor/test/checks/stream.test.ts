import { expect, test } from 'vitest'
import { idsCheck, spacedResult, streamCheck } from '../../src/checks/stream.ts'
import { probeId, spacedEvents, spacedEveryMs } from '../../src/probe.ts'
import type { OpenProbe } from '../../src/probe-client.ts'
import type { Server } from '../../src/report.ts'

const server = { kind: 'program' } as Server
const token = 'abcdefgh'

/** A probe that came on time, in which a filter has replaced the data of the fourth event. */
function probeWith(alteredData: string): OpenProbe {
  const events = Array.from({ length: spacedEvents }, (_, n) => {
    const atMs = n * spacedEveryMs
    const data = n === 3 ? alteredData : JSON.stringify({ n, atMs })
    return { type: 'tick', id: probeId(token, n), data, at: 50 + atMs + (n % 2) }
  })
  const end = { type: 'end', id: '', data: '', at: 3000 }
  const reading = { events: [...events, end], comments: [], firstByteAt: 20, endedAt: 3000, ended: Promise.resolve() }
  return { token, reading } as unknown as OpenProbe
}

test.each(['removed by a filter', '{}', 'null'])(
  'an event whose data was changed to %s leaves the delays of the others known',
  async (alteredData) => {
    const check = streamCheck(await spacedResult(probeWith(alteredData), 0), server)
    expect(check.state).toBe('good')
    expect(check.summary).toBe('first byte after 20 ms, 19 events, 1 ms late at most')
  },
)

test('the doctor shows the data that was changed on the way', () => {
  const check = idsCheck(probeWith('removed by a filter'), server)
  expect(check.state).toBe('fault')
  expect(check.summary).toBe('the data of an event was changed on the way: "removed by a filter" arrived')
})
