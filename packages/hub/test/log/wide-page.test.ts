import { comparePositions, isAfter, type Position } from '@rejoin/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { LogEvent } from '../../src/log/contract.ts'
import type { PartRead } from '../../src/log/merged-page.ts'
import { createWidePage } from '../../src/log/wide-page.ts'

const at = (seq: number): Position => ({ ms: 1, seq })
const eventAt = (seq: number, length: number): LogEvent => ({
  ...{ kind: 'event', channel: 'a', type: '', data: 'x'.repeat(length), position: at(seq), at: 0, previous: at(0) },
})

test('a page of many channels holds the first events of all of them, whatever the order in which they are added', () => {
  const sizes = fc.array(fc.tuple(fc.integer({ min: 0, max: 40 }), fc.nat({ max: 30 })), { maxLength: 60 })
  const limits = fc.record({ events: fc.integer({ min: 1, max: 20 }), bytes: fc.integer({ min: 1, max: 200 }) })
  fc.assert(
    fc.property(sizes, limits, fc.integer({ min: 1, max: 12 }), (owners, limit, atATime) => {
      const all = owners.map(([owner, length], index) => ({ owner, event: eventAt(index + 1, length) }))
      const through = at(1000)
      const page = createWidePage({ after: at(0), through, limit })
      for (const owner of new Set(owners.map(([owner]) => owner))) {
        const own = all.filter((entry) => entry.owner === owner && !isAfter(entry.event.position, page.through))
        const events = own.map(({ event }) => event)
        const isCut = events.length > atATime
        const last = events[atATime - 1]?.position as Position
        page.add([{ events: events.slice(0, atATime), through: isCut ? last : page.through }])
      }
      const result = page.result() as PartRead
      const expected = all.map(({ event }) => event).filter(({ position }) => !isAfter(position, result.through))
      expect(result.events).toEqual(expected.sort((a, b) => comparePositions(a.position, b.position)))
      expect(result.events.length).toBeLessThanOrEqual(limit.events)
      const bytes = result.events.slice(0, -1).reduce((sum, { data }) => sum + data.length, 0)
      expect(bytes).toBeLessThan(Math.max(1, limit.bytes))
      // It leads on.
      expect(result.events.length > 0 || isAfter(result.through, at(999))).toBe(true)
    }),
    { numRuns: 300 },
  )
})
