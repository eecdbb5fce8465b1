import { createVirtualEnvironment } from '@rejoin/hub/testing'
import { origin } from '@rejoin/protocol'
import { expect, test } from 'vitest'
import type { Commits } from '../../../../src/log/lmdb/commit/commits.ts'
import { startSweep } from '../../../../src/log/lmdb/commit/sweep.ts'
import type { Store } from '../../../../src/log/lmdb/files/store.ts'
import { channelKey } from '../../../../src/log/lmdb/format/keys.ts'
import { type ChannelState, sealChannelState } from '../../../../src/log/lmdb/format/state.ts'
import { createWindows } from '../../../../src/log/window.ts'

const quiet: ChannelState = {
  ...{ number: 1, newest: { ms: 5, seq: 0 }, trimmedThrough: origin, invalidatedThrough: origin },
  ...{ events: 3, bytes: 30, oldestAt: 0, emptySince: 0 },
}
const empty = { ...quiet, events: 0, bytes: 0, trimmedThrough: quiet.newest }

test('the sweep asks for a commit for each channel that is beyond its window, by whichever bound', async () => {
  expect(await commitsFor(quiet, { maxEvents: 3, maxAgeMs: Number.POSITIVE_INFINITY, maxBytes: 30 })).toBe(0)
  expect(await commitsFor(quiet, { maxEvents: 2, maxAgeMs: Number.POSITIVE_INFINITY, maxBytes: 30 })).toBe(1)
  expect(await commitsFor(quiet, { maxEvents: 3, maxAgeMs: Number.POSITIVE_INFINITY, maxBytes: 29 })).toBe(1)
  expect(await commitsFor(quiet, { maxEvents: 3, maxAgeMs: 1, maxBytes: 30 })).toBe(1)
})

test('the sweep asks for a commit for a channel that can be forgotten, and for none for one that retains values', async () => {
  const window = { maxEvents: 3, maxAgeMs: 1000, maxBytes: 30 }
  expect(await commitsFor(empty, window)).toBe(1)
  expect(await commitsFor({ ...empty, retained: { keys: 1, bytes: 1 } }, window)).toBe(0)
})

test('a sweep that meets a page it cannot read leaves the process alone', async () => {
  const environment = createVirtualEnvironment()
  const range = () => {
    throw new Error('MDB_CORRUPTED')
  }
  const stop = sweep(
    { range },
    { maxEvents: 1, maxAgeMs: 1000, maxBytes: 1 },
    environment,
    async () => undefined as never,
  )
  await environment.advance(60_000)
  stop()
})

/** How many commits the first step of a sweep asks for when this is the only channel. */
async function commitsFor(state: ChannelState, window: Parameters<typeof createWindows>[0]): Promise<number> {
  const environment = createVirtualEnvironment()
  const key = channelKey('a')
  const channels = [{ key, value: sealChannelState(key, state) }]
  let commits = 0
  const stop = sweep({ range: (start) => (start[0] === key[0] ? channels : []) }, window, environment, async () => {
    commits += 1
    return undefined as never
  })
  await environment.advance(100)
  stop()
  return commits
}

function sweep(
  store: Pick<Store, 'range'>,
  window: Parameters<typeof createWindows>[0],
  environment: ReturnType<typeof createVirtualEnvironment>,
  submit: Commits['submit'],
) {
  const commits = { submit, settled: async () => undefined }
  const windows = createWindows(window)
  return startSweep({ store: store as Store, commits, environment, windows, forgetAfterMs: 50 })
}
