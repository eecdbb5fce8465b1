import { createRandom } from '@rejoin/hub/testing'
import { describe, expect, test } from 'vitest'
import { createEpoch, isEpoch } from '../src/epoch.ts'
import { branchAt, type History, mergeBranches, type NewBranch, openBranch } from '../src/history.ts'

describe('an epoch (§2.3)', () => {
  test('is 8 characters of upper-case Crockford base 32, and rarely the same', () => {
    const random = createRandom(1)
    const epochs = new Set(Array.from({ length: 10_000 }, () => createEpoch(random)))
    expect(epochs.size).toBe(10_000)
    for (const epoch of epochs) expect(epoch).toMatch(/^[0-9A-HJKMNP-TV-Z]{8}$/)
  })

  test('uses all 40 bits', () => {
    expect(createEpoch(() => 0)).toBe('00000000')
    expect(createEpoch(() => 1 - 2 ** -53)).toBe('ZZZZZZZZ')
  })

  test.each(['', 'K3X9M2P', 'K3X9M2PQQ', 'k3x9m2pq', 'K3X9M2PU', 'K3X9M2P\n', 'K3X9M2PQ\n', 12345678, null, undefined])(
    'is not %j',
    (value) => {
      expect(isEpoch(value)).toBe(false)
    },
  )
})

describe('the branches of a log (§2.3)', () => {
  const one = openBranch([], { epoch: 'AAAAAAAA', first: { ms: 100, seq: 0 } })
  const two = openBranch(one, { epoch: 'BBBBBBBB', first: { ms: 200, seq: 3 }, fork: { ms: 150, seq: 1 } })

  test('are numbered in the order in which they opened', () => {
    expect(two.map(({ epoch, number }) => ({ epoch, number }))).toEqual([
      { epoch: 'AAAAAAAA', number: 0 },
      { epoch: 'BBBBBBBB', number: 1 },
    ])
  })

  test('may skip numbers, so that two copies of a log do not open the same', () => {
    const fork = { ms: 210, seq: 0 }
    expect(openBranch(two, { epoch: 'CCCCCCCC', first: { ms: 300, seq: 0 }, fork, step: 7 }).at(-1)?.number).toBe(8)
    expect(openBranch([], { epoch: 'CCCCCCCC', first: { ms: 300, seq: 0 }, step: 7 }).at(-1)?.number).toBe(6)
  })

  test('are merged into the oldest of those that stay, half of them at once', () => {
    const three = openBranch(two, { epoch: 'CCCCCCCC', first: { ms: 300, seq: 0 }, fork: { ms: 250, seq: 0 } })
    expect(mergeBranches(three, 3)).toBe(three)
    expect(mergeBranches(three, 2)).toEqual([{ epoch: 'CCCCCCCC', number: 2, first: { ms: 100, seq: 0 } }])
    const four = openBranch(three, { epoch: 'DDDDDDDD', first: { ms: 400, seq: 0 }, fork: { ms: 350, seq: 0 } })
    expect(mergeBranches(four, 3).map(({ epoch, first }) => `${epoch} ${first.ms}`)).toEqual([
      'CCCCCCCC 100',
      'DDDDDDDD 400',
    ])
  })

  test('leave the history they were added to as it was', () => {
    expect(one).toHaveLength(1)
  })

  test('come back from JSON as they went', () => {
    expect(JSON.parse(JSON.stringify(two))).toStrictEqual(two)
  })

  test('hold the positions from their first on, up to the first of the next', () => {
    expect(branchAt(two, { ms: 99, seq: 9 })).toBeUndefined()
    expect(branchAt(two, { ms: 100, seq: 0 })?.epoch).toBe('AAAAAAAA')
    expect(branchAt(two, { ms: 200, seq: 2 })?.epoch).toBe('AAAAAAAA')
    expect(branchAt(two, { ms: 200, seq: 3 })?.epoch).toBe('BBBBBBBB')
    expect(branchAt(two, { ms: 9999, seq: 0 })?.epoch).toBe('BBBBBBBB')
    expect(branchAt([], { ms: 0, seq: 0 })).toBeUndefined()
  })

  test.each<[string, History, Partial<NewBranch>, RegExp]>([
    ['starts where the one before did', two, { first: { ms: 200, seq: 3 } }, /not after that of the branch before/],
    ['starts at its own fork', two, { fork: { ms: 300, seq: 0 } }, /not after its fork/],
    ['follows another and does not say what survived', two, { fork: undefined }, /needs a fork/],
    ['is the first and claims to have survived something', [], {}, /can have no fork/],
    ['has the name of another', two, { epoch: 'AAAAAAAA' }, /taken/],
    ['has a name that is no epoch', two, { epoch: 'cccccccc' }, /not 8 characters/],
  ])('reject one that %s', (_, history, wrong, message) => {
    const good = { epoch: 'CCCCCCCC', first: { ms: 300, seq: 0 }, fork: { ms: 250, seq: 0 } }
    expect(() => openBranch(history, { ...good, ...wrong })).toThrow(
      expect.objectContaining({ code: 'invalid-option', message: expect.stringMatching(message) }),
    )
  })
})
