import { describe, expect, test } from 'vitest'
import {
  closeReasons,
  encodeCheckpoint,
  encodeClose,
  encodeHeartbeat,
  encodeHello,
  encodeSyncRequired,
  type Hello,
  type SyncRequired,
} from '../src/control.ts'
import { gapReasons } from '../src/gap-reason.ts'
import { isReservedType } from '../src/names.ts'
import { createParser, type ParsedEvent } from '../src/parse.ts'

const id = '01JCQ8ZK5N7W2V0G3T9B4D6H1M'
const hello: Hello = { resumed: true, requested: id, heartbeatMs: 25_000, connection: 'c_8f2a91' }
const sync: SyncRequired = { reason: 'expired', channels: ['orders/42'], requested: '01JCQ8', oldest: null, latest: id }

describe('hello (§4.4)', () => {
  test('is the frame of the protocol text, byte for byte', () => {
    expect(encodeHello(hello, { id, retryMs: 2000 })).toBe(
      [
        'retry: 2000',
        `id: ${id}`,
        'event: hello',
        `data: {"resumed":true,"requested":"${id}","heartbeatMs":25000,"connection":"c_8f2a91"}`,
        '',
        '',
      ].join('\n'),
    )
  })

  test('has no id when the cursor was not accepted, so it leaves the reader where it is', () => {
    const frame = encodeHello({ ...hello, resumed: false }, { retryMs: 2000 })
    expect(read(frame, 'held')).toMatchObject({ events: [{ type: 'hello', id: 'held' }], retries: [2000] })
  })

  test('gives back a cursor that was sent, whatever stands in it, on its one line of data', () => {
    for (const requested of ['a\n\nid: 9\n\n', '\r', '\0', '"', '\u2028', '\ud83d']) {
      const { events } = read(encodeHello({ ...hello, requested }, { id, retryMs: 2000 }))
      expect(events).toHaveLength(1)
      expect(JSON.parse(events[0]!.data)).toEqual({ ...hello, requested })
    }
  })
})

describe('sync-required (§4.6)', () => {
  test('is one event whose id is where the stream goes on', () => {
    expect(encodeSyncRequired(sync, { id })).toBe(
      `id: ${id}\nevent: sync-required\ndata: {"reason":"expired","channels":["orders/42"],"requested":"01JCQ8","oldest":null,"latest":"${id}"}\n\n`,
    )
  })

  test('carries a snapshot of any JSON value', () => {
    for (const snapshot of [null, 0, 'a\nb', { items: [1, 2] }]) {
      const { events } = read(encodeSyncRequired(sync, { id, snapshot: JSON.stringify(snapshot, null, 2) }))
      expect(JSON.parse(events[0]!.data)).toEqual({ ...sync, snapshot })
    }
  })

  test('has a reason for each kind of gap', () => {
    for (const reason of gapReasons) {
      const { events } = read(encodeSyncRequired({ ...sync, reason }, { id }))
      expect(JSON.parse(events[0]!.data).reason).toBe(reason)
    }
  })
})

describe('checkpoint (§4.9)', () => {
  test('moves the cursor with an event that has data, because some browsers drop the id of a block without', () => {
    expect(encodeCheckpoint({ id })).toBe(`id: ${id}\nevent: checkpoint\ndata: {}\n\n`)
  })
})

describe('close (§4.10)', () => {
  test('says why, and leaves the cursor where it is', () => {
    for (const reason of closeReasons) {
      const { events, lastEventId } = read(encodeClose({ reason }), 'held')
      expect(events.map(({ type, data }) => [type, JSON.parse(data)])).toEqual([['close', { reason }]])
      expect(lastEventId).toBe('held')
    }
  })

  test('says first when to come back', () => {
    expect(encodeClose({ reason: 'drain' }, { retryMs: 1500 })).toBe(
      'retry: 1500\nevent: close\ndata: {"reason":"drain"}\n\n',
    )
    expect(encodeClose({ reason: 'drain' })).not.toContain('retry')
  })
})

describe('a heartbeat (§4.7)', () => {
  test('is a comment that moves nothing', () => {
    expect(encodeHeartbeat()).toBe(': hb\n\n')
    expect(read(encodeHeartbeat(), 'held')).toEqual({ events: [], retries: [], lastEventId: 'held' })
  })
})

test('every control event has a reserved type, so nobody can publish one', () => {
  const frames = [
    encodeHello(hello, { id, retryMs: 2000 }),
    encodeSyncRequired(sync, { id }),
    encodeCheckpoint({ id }),
    encodeClose({ reason: 'admin' }),
  ]
  expect(read(frames.join('')).events.map(({ type }) => isReservedType(type))).toEqual([true, true, true, true])
})

test('an id that would break out of its line is rejected in every control event', () => {
  const forged = '7\n\ndata: forged'
  expect(() => encodeHello(hello, { id: forged, retryMs: 2000 })).toThrow('cannot be sent as an id')
  expect(() => encodeSyncRequired(sync, { id: forged })).toThrow('cannot be sent as an id')
  expect(() => encodeCheckpoint({ id: forged })).toThrow('cannot be sent as an id')
})

function read(text: string, lastEventId = ''): { events: ParsedEvent[]; retries: number[]; lastEventId: string } {
  const events: ParsedEvent[] = []
  const retries: number[] = []
  const parser = createParser({
    lastEventId,
    onEvent: (event) => events.push(event),
    onRetry: (ms) => retries.push(ms),
  })
  parser.feed(text)
  return { events, retries, lastEventId: parser.lastEventId }
}
