import type { LogEvent } from '@rejoin/hub/log'
import { origin } from '@rejoin/protocol'
import { expect, test } from 'vitest'
import { createReadersState } from './readers-state.ts'
import { createTruth, type Entry } from './truth.ts'

test('values that were read on a branch which the log then lost are not held against the hub', () => {
  const { truth, put, readerAt } = stage()
  const main = truth.forkLine(-1, origin)
  const old = put(main, 1, 'old')
  const stands = put(main, 2)
  const left = truth.forkLine(main, stands.position)
  const lost = put(left, 3, 'lost')
  const promoted = truth.forkLine(main, stands.position)
  const reader = readerAt(stands, [lost])
  lost.lostAt = 10
  reader.state.apply(put(promoted, 4))
  expect(reader.accusations).toEqual([])
  expect(readerAt(stands, [old]).accusations).toEqual([])
})

test('a reader is led past its values before they are compared, and then they have to be right', () => {
  const { truth, put, readerAt } = stage()
  const main = truth.forkLine(-1, origin)
  const old = put(main, 1, 'old')
  const stands = put(main, 2)
  const next = put(truth.forkLine(main, stands.position), 3, 'new')
  const [given, stale] = [readerAt(stands, [next]), readerAt(stands, [old])]
  stale.state.check(stands)
  expect([given.checks(), stale.checks()]).toEqual([0, 0])
  const last = put(next.line, 4)
  for (const { state } of [given, stale]) state.check(last)
  expect([given.checks(), given.accusations]).toEqual([1, []])
  expect([stale.checks(), stale.accusations]).toEqual([1, ['has old as a k, which is new']])
})

function stage() {
  const truth = createTruth()
  function put(line: number, ms: number, name?: string): Entry {
    const event = { channel: 'a', ...(name === undefined ? {} : { key: 'k' }) } as LogEvent
    const entry = { position: { ms, seq: 0 }, id: `${ms}`, kind: 'event' as const, event, line, log: 0, notedAt: ms }
    return truth.note(name === undefined ? entry : { ...entry, name })
  }
  function readerAt(at: Entry, values: readonly Entry[]) {
    const accusations: string[] = []
    let checks = 0
    const state = createReadersState({
      ...{ truth, names: ['a'], retain: ['a'], isWhole: true },
      accuse: (message) => void accusations.push(message),
      onChecked: () => {
        checks += 1
      },
    })
    state.replace(
      at,
      values.map(({ id }) => ({ id, channel: 'a', key: 'k' })),
      false,
    )
    return { state, accusations, checks: () => checks }
  }
  return { truth, put, readerAt }
}
