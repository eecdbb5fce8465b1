import { origin } from '@rejoin/protocol'
import { expect, test } from 'vitest'
import { trimChannel } from '../../../../src/log/lmdb/commit/trim.ts'
import type { Store } from '../../../../src/log/lmdb/files/store.ts'
import type { ChannelState } from '../../../../src/log/lmdb/format/state.ts'

test('a channel whose records are lost is not trimmed again and again', () => {
  const store = { range: () => [] as Iterable<never> } as Partial<Store> as Store
  const counts = { events: 5, bytes: 50, oldestAt: 0, emptySince: 0 }
  const state: ChannelState = {
    ...{ number: 1, newest: { ms: 5, seq: 0 }, trimmedThrough: origin, invalidatedThrough: origin },
    ...counts,
  }
  const window = { maxEvents: 1, maxAgeMs: 10, maxBytes: 1 }
  const trimmed = trimChannel(store, state, [], { window, now: 1000, marks: [], atMost: 512 })
  expect(trimmed).toMatchObject({ emptied: [], steps: 0, isCutShort: false })
})
