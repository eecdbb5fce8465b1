import { expect, test } from 'vitest'
import { type Connection, newConnection } from '../src/connection.ts'
import type { Report } from '../src/connection-input.ts'
import { createReceivers, type Receiver } from '../src/receiver.ts'

test('a reload that outlasts its connection also holds what the next one receives', async () => {
  const { receiver, events, finishReload, switchTo } = receiving()
  const first = greet(receiver(1))
  const held = first({ type: 'sync-required', data: '{}', id: 'e5' })
  switchTo(2)
  const next = receiver(2)({ type: 'message', data: '1', id: 'e6' })
  expect(events).toEqual([])
  finishReload()
  await Promise.all([held, next])
  expect(events).toEqual(['e6'])
})

test('events of a connection are not delivered once another connection has replaced it', async () => {
  const { receiver, events, finishReload, switchTo } = receiving()
  const first = greet(receiver(1))
  void first({ type: 'sync-required', data: '{}', id: 'e5' })
  const held = first({ type: 'message', data: '1', id: 'e6' })
  switchTo(2)
  finishReload()
  await held
  expect(events).toEqual([])
  expect(first({ type: 'message', data: '2', id: 'e7' })).toBeUndefined()
  expect(events).toEqual([])
})

test('reading is paused for a reload and goes on after it, and the cursor moves in between', async () => {
  const { receiver, reports, finishReload } = receiving()
  const held = greet(receiver(1))({ type: 'sync-required', data: '{}', id: 'e5' })
  expect(reports.slice(1)).toEqual([{ type: 'sync' }, { type: 'paused', paused: true }])
  finishReload()
  await held
  expect(reports.slice(3)).toEqual([
    { type: 'id', id: 'e5' },
    { type: 'paused', paused: false },
  ])
})

test('a gap whose description cannot be read is told all the same', () => {
  const { receiver, gaps } = receiving()
  void greet(receiver(1))({ type: 'sync-required', data: 'not JSON', id: 'e5' })
  expect(gaps).toEqual([{ reason: 'unknown-id', channels: [], requested: 'e1', oldest: null, latest: 'e5' }])
})

test('an event with an id that is too long to be sent back does not move the cursor', () => {
  const { receiver, events, places } = receiving()
  const receive = receiver(1)
  const id = 'x'.repeat(8001)
  for (const each of ['e2', id, id]) void receive({ type: 'message', data: '1', id: each })
  expect(events).toEqual(['e2', id, id])
  expect(places).toEqual(['e2', null, null])
})

test('nothing counts as a repetition after a gap, as the log may have another history', async () => {
  const { receiver, events, finishReload } = receiving()
  const receive = receiver(1)
  greet(receive)
  for (const id of ['e1', 'e2', 'e1']) void receive({ type: 'message', data: '1', id })
  expect(events).toEqual(['e1', 'e2'])
  const held = receive({ type: 'sync-required', data: '{}', id: 'e3' })
  finishReload()
  await held
  for (const id of ['e1', 'e2', 'e1']) void receive({ type: 'message', data: '2', id })
  expect(events).toEqual(['e1', 'e2', 'e1', 'e2'])
})

/** Lets the server show itself as a hub (§4.4). */
function greet(receive: Receiver): Receiver {
  void receive({ type: 'hello', data: '{"resumed":false}', id: 'e0' })
  return receive
}

/** Receivers of a stream that is connected for the first time, with a reload that the test ends. */
function receiving() {
  let connection: Connection = { ...newConnection('e1', 'me'), sent: 'e1', state: 'connected', generation: 1 }
  let finishReload!: () => void
  const reload = new Promise<void>((resolve) => {
    finishReload = resolve
  })
  const events: string[] = []
  const places: (string | null)[] = []
  const gaps: unknown[] = []
  const reports: Report[] = []
  const handlers: Parameters<typeof createReceivers>[0] = {
    event({ id }) {
      events.push(id)
      return undefined
    },
    call: () => undefined,
    sync(gap) {
      gaps.push(gap)
      return reload
    },
  }
  const receiver = createReceivers(
    handlers,
    () => connection,
    (report) => reports.push(report),
    (_, id) => places.push(id),
    () => undefined,
  )
  const switchTo = (generation: number) => {
    connection = { ...connection, generation }
  }
  return { receiver, events, places, gaps, reports, finishReload, switchTo }
}
