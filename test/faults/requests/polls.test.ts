import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runPolls } from './polls.ts'
import { isAnswer } from './polls-judge.ts'
import { type ModelPoll, PollModel } from './polls-model.ts'

test.each([1, 2])('every poll of a random history is answered as a simple model says, in memory (%i)', async (seed) => {
  const { counts, wrong } = await runPolls({ seed, polls: 400, hubs: [{}] })
  expect(wrong).toEqual([])
  expect(Math.min(counts.resumed ?? 0, counts.gaps ?? 0, counts.fresh ?? 0, counts.beheaded ?? 0)).toBeGreaterThan(20)
})

test('every poll of a random history is answered as a simple model says, over restarts of the embedded log', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'rejoin-polls-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const { counts, wrong } = await runPolls({ seed: 3, polls: 400, hubs: [{ directory }] })
  expect(wrong).toEqual([])
  expect(counts.restarts).toBeGreaterThan(0)
})

describe('the model of polls, of a resume that comes to a gap (§4.6)', () => {
  const model = new PollModel(2)
  for (const id of ['1', '2', '3', '4', '5']) model.published({ id, channel: 'a', type: 'message', data: `"${id}"` })
  const asked: ModelPoll = { names: ['a'], types: [], start: { from: 'cursor', cursor: '1' } }

  /** What a hub says that has these events in memory, and finds that the rest of them is gone. */
  function isAllowed(ids: readonly string[], requested: string, reason = 'expired'): boolean {
    const events = [
      { id: '1', type: 'hello', data: '{"resumed":true,"requested":"1"}' },
      ...ids.map((id) => ({ id, type: 'message', data: `"${id}"` })),
      { id: '5', type: 'sync-required', data: JSON.stringify({ reason, requested, latest: '5' }) },
    ]
    return model.answers(asked).some((answer) => isAnswer(answer, asked, { status: 200, events, cursor: '5' }))
  }

  test('allows it with everything up to the position that the gap names', () => {
    expect(isAllowed(['2'], '2')).toBe(true)
    expect(isAllowed(['2', '3'], '3')).toBe(true)
  })

  test('rejects it when an event before that position is missing, or comes after it', () => {
    expect(isAllowed(['3'], '3')).toBe(false)
    expect(isAllowed(['2'], '3')).toBe(false)
    expect(isAllowed(['2', '3'], '2')).toBe(false)
  })

  test('rejects it when nothing was resumed, or for a reason that is not the case', () => {
    expect(isAllowed([], '1')).toBe(false)
    expect(isAllowed(['2'], '2', 'forced')).toBe(false)
    expect(isAllowed(['2'], 'nonsense')).toBe(false)
  })
})
