import { describe, expect, test } from 'vitest'
import { createReaderRecord } from '../src/reader-record.ts'

const good = { lost: 0, announced: 0, doubled: 0, disordered: 0 }

describe('the record of one reader', () => {
  test('is good when every event came once and in order', () => {
    expect(seen([0, 1, 2]).verdict(3)).toEqual(good)
  })

  test('shows a loss in the middle, and at the end', () => {
    expect(seen([0, 1, 4, 5]).verdict(6)).toEqual({ ...good, lost: 2, firstLost: 2 })
    expect(seen([0, 1]).verdict(4)).toEqual({ ...good, lost: 2, firstLost: 2 })
    expect(seen([]).verdict(4)).toEqual({ ...good, lost: 4, firstLost: 0 })
  })

  test('tells a doubled event from a late one', () => {
    expect(seen([0, 1, 1, 2]).verdict(3)).toEqual({ ...good, doubled: 1 })
    expect(seen([0, 2, 1, 3]).verdict(4)).toEqual({ ...good, disordered: 1 })
    expect(seen([0, 2, 1, 1, 3]).verdict(4)).toEqual({ ...good, disordered: 1, doubled: 1 })
  })

  test('still shows a loss as lost after one event of it came late', () => {
    expect(seen([0, 5, 3]).verdict(6)).toEqual({ ...good, lost: 3, firstLost: 1, disordered: 1 })
  })

  test('says of each event what it found', () => {
    const record = createReaderRecord()
    expect([0, 2, 1, 1, 3].map((number) => record.event(number))).toEqual([
      'expected',
      'skipped',
      'late',
      'doubled',
      'expected',
    ])
  })

  test('counts events that the hub has announced as gone apart from losses', () => {
    const record = seen([0, 1])
    record.gap(5)
    record.event(5)
    expect(record.verdict(6)).toEqual({ ...good, announced: 3 })
  })

  test('does not let an announced gap cover events that were published after it', () => {
    const record = seen([0, 1])
    record.gap(4)
    record.event(6)
    expect(record.verdict(7)).toEqual({ ...good, announced: 2, lost: 2, firstLost: 4 })
    const ending = seen([0, 1])
    ending.gap(4)
    expect(ending.verdict(6)).toEqual({ ...good, announced: 2, lost: 2, firstLost: 4 })
  })

  test('does not let an announced gap excuse a later loss', () => {
    const record = seen([0, 1])
    record.gap(4)
    record.event(4)
    record.event(6)
    expect(record.verdict(7)).toEqual({ ...good, announced: 2, lost: 1, firstLost: 5 })
  })

  test('owes a reader that started late nothing that was sent before, and everything after', () => {
    const record = createReaderRecord()
    record.begin(10)
    record.event(11)
    expect(record.verdict(12)).toEqual({ ...good, lost: 1, firstLost: 10 })
  })

  test('says whether the reader has come so far', () => {
    const record = seen([0, 1])
    expect([record.hasReached(2), record.hasReached(3)]).toEqual([true, false])
  })

  test('does not wait for events at the end that the hub has announced to be gone', () => {
    const record = seen([0, 1])
    record.gap(4)
    expect([record.hasReached(4), record.hasReached(5)]).toEqual([true, false])
  })
})

function seen(numbers: readonly number[]) {
  const record = createReaderRecord()
  for (const number of numbers) record.event(number)
  return record
}
