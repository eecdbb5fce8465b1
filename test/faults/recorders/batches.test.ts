import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type BatchOutcome, inBatches, type TextEvent } from './batches.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('events that are published within the time are one batch, and each has its own id', async () => {
  const { calls, answers, send } = scripted()
  answers.push({ kind: 'ok', ids: ['x', 'y'] }, { kind: 'ok', ids: ['z'] })
  const first = [send('a', '1', 'k1'), send('b', '2', 'k2')]
  await vi.advanceTimersByTimeAsync(10)
  const second = send('a', '3', 'k3')
  await vi.advanceTimersByTimeAsync(10)
  expect(await Promise.all([...first, second])).toEqual(['x', 'y', 'z'].map((id) => ({ kind: 'ok', id })))
  expect(calls).toEqual(['k1: a 1, b 2', 'k3: a 3'])
})

test('a batch without an answer is sent again as it is, whatever is published meanwhile', async () => {
  const { calls, answers, send } = scripted()
  answers.push({ kind: 'unknown', why: 'cut' }, { kind: 'ok', ids: ['y'] }, { kind: 'ok', ids: ['x'] })
  const first = send('a', '1', 'k1')
  await vi.advanceTimersByTimeAsync(10)
  const second = send('b', '2', 'k2')
  await vi.advanceTimersByTimeAsync(60)
  expect(await Promise.all([first, second])).toEqual(['x', 'y'].map((id) => ({ kind: 'ok', id })))
  expect(calls).toEqual(['k1: a 1', 'k2: b 2', 'k1: a 1'])
})

test('a rejection is told to all of the batch', async () => {
  const { answers, send } = scripted()
  answers.push({ kind: 'fail', why: 'status 413' })
  const both = Promise.all([send('a', '1', 'k1'), send('b', '2', 'k2')])
  await vi.advanceTimersByTimeAsync(10)
  expect(await both).toEqual([1, 2].map(() => ({ kind: 'fail', why: 'status 413' })))
})

function scripted() {
  const calls: string[] = []
  const answers: BatchOutcome[] = []
  const sendBatch = async (events: readonly TextEvent[], key: string) => {
    calls.push(`${key}: ${events.map(({ channel, text }) => `${channel} ${text}`).join(', ')}`)
    return answers.shift() ?? { kind: 'fail' as const, why: 'nothing more is expected' }
  }
  return { calls, answers, send: inBatches(sendBatch, 10) }
}
