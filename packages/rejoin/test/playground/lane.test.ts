import { expect, test } from 'vitest'
import { createLane } from '../../pages/playground/lane.ts'

test('a number that arrives over a connection that goes on is live, whatever else is told of the connection', () => {
  const lane = createLane()
  lane.connected()
  lane.sending(1)
  // The state of a stream has more parts: it is told again when one of them changes.
  lane.connected()
  lane.receive(1)
  expect(lane.getSnapshot().kinds[0]).toBe('live')
})

test('a number that was published during a cut is replayed', () => {
  const lane = createLane()
  lane.connected()
  lane.away('reconnecting')
  lane.sending(1)
  lane.connected()
  lane.receive(1)
  expect(lane.getSnapshot().kinds[0]).toBe('replayed')
})
