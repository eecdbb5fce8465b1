import { createVirtualEnvironment } from '@rejoin/hub/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type ByteLedgerOptions, createByteLedger, type Holder } from '../../src/hub/byte-ledger.ts'

describe('a watched entry', () => {
  test('is evicted after the stall timeout, also when the clock is set back meanwhile', async () => {
    const { environment, answers } = open({ stallTimeoutMs: 1000 })
    const holder = holding(100)
    answers.send(holder, {})
    environment.stepClock(-3_600_000)
    await environment.advance(900)
    expect(holder.evict).not.toHaveBeenCalled()
    await environment.advance(600)
    expect(holder.evict).toHaveBeenCalledExactlyOnceWith('stalled')
    expect(answers.evictions).toEqual({ stalled: 1, overloaded: 0 })
    expect(answers.bytes).toBe(0)
  })

  test('stays while its peer takes bytes, also when more were written meanwhile', async () => {
    const { environment, streams } = open({ stallTimeoutMs: 60_000 })
    const holder = holding(100)
    const entry = streams.open(holder)
    entry.watch()
    holder.pending = 1000
    entry.watch()
    for (let quarter = 0; quarter < 12; quarter += 1) {
      await environment.advance(15_000)
      holder.pending -= 10
    }
    expect(holder.evict).not.toHaveBeenCalled()
    await environment.advance(120_000)
    expect(holder.evict).toHaveBeenCalledExactlyOnceWith('stalled')
  })

  test('has all the time again once it has drained', async () => {
    const { environment, streams } = open({ stallTimeoutMs: 60_000 })
    const holder = holding(100)
    const entry = streams.open(holder)
    for (let times = 0; times < 5; times += 1) {
      entry.watch()
      await environment.advance(50_000)
      entry.drained()
    }
    await environment.advance(120_000)
    expect(holder.evict).not.toHaveBeenCalled()
  })
})

describe('the account of streams', () => {
  test('counts what the readers have yet to take', () => {
    const { streams } = open()
    const holder = holding(300)
    const entry = streams.open(holder)
    entry.add(200)
    expect(streams.bytes).toBe(200)
    entry.add(200)
    expect(streams.bytes).toBe(300)
    holder.pending = 120
    entry.drained()
    expect(streams.bytes).toBe(120)
    entry.close()
    expect(streams.bytes).toBe(0)
  })

  test('recounts once per turn while it is full, and wakes what waits when an entry is closed', async () => {
    const { environment, streams } = open({ maxStreamBytes: 1000 })
    const holder = holding(1000)
    const entry = streams.open(holder)
    entry.add(1000)
    expect(streams.free()).toBe(0)
    holder.pending = 400
    expect(streams.free()).toBe(0)
    await environment.settle()
    expect(streams.free()).toBe(600)
    let woken = false
    void streams.room().then(() => {
      woken = true
    })
    entry.close()
    await environment.settle()
    expect(woken).toBe(true)
  })

  test('evicts nobody who waited for less than a second, and then frees an eighth, the slowest first', async () => {
    const { environment, streams } = open({ maxStreamBytes: 1000 })
    const holders = [500, 300, 200].map(holding)
    for (const holder of holders) streams.open(holder).add(holder.pending)
    const [reads, large, small] = holders as [TestHolder, TestHolder, TestHolder]
    await environment.advance(900)
    expect(streams.evictions.overloaded).toBe(0)
    reads.pending -= 100
    streams.open(holding(100)).add(100)
    await environment.advance(1500)
    expect([reads, large, small].map(({ evict }) => evict.mock.calls.length)).toEqual([0, 1, 0])
    expect(streams.bytes).toBe(700)
  })
})

describe('the account of answers', () => {
  test('counts an answer in full until it is closed, by connection and in all', () => {
    const { answers } = open()
    const [one, other] = [{}, {}]
    const holder = holding(500)
    const entry = answers.send(holder, one)
    const collected = answers.open(undefined, one)
    collected.add(70)
    answers.send(holding(30), other)
    holder.pending = 10
    expect([answers.bytes, answers.heldBy(one), answers.heldBy(other)]).toEqual([600, 570, 30])
    entry.close()
    collected.close()
    collected.close()
    expect([answers.bytes, answers.heldBy(one), answers.heldBy({})]).toEqual([30, 0, 0])
  })

  test('at its limit evicts the oldest that have been on their way for a second, and none while they are collected', async () => {
    const evicted: number[] = []
    const { environment, answers } = open({ maxAnswerBytes: 1000, onAnswerEvicted: (pending) => evicted.push(pending) })
    const old = [300, 200].map(holding)
    for (const holder of old) answers.send(holder, {})
    answers.open(undefined, {}).add(400)
    expect(answers.free()).toBe(100)
    await environment.advance(1500)
    const young = holding(150)
    answers.send(young, {})
    expect(answers.free()).toBe(250)
    expect(evicted).toEqual([300])
    expect(answers.evictions).toEqual({ stalled: 0, overloaded: 1 })
    expect(young.evict).not.toHaveBeenCalled()
  })
})

describe('the account of bodies', () => {
  test('evicts the oldest body that is not complete, at once', () => {
    const { bodies } = open({ maxIncomingBytes: 1000 })
    const holders = [holding(0), holding(0), holding(0)]
    const [complete, slow, last] = holders.map((holder) => bodies.open(holder))
    complete?.add(400)
    complete?.pin()
    slow?.add(400)
    last?.add(400)
    slow?.add(400)
    expect(holders.map(({ evict }) => evict.mock.calls)).toEqual([[], [['overloaded']], []])
    expect(bodies.bytes).toBe(800)
    complete?.close()
    expect(bodies.bytes).toBe(400)
  })
})

test('checks run only while bytes wait', async () => {
  const environment = createVirtualEnvironment()
  const after = vi.spyOn(environment, 'after')
  const { streams } = open({}, environment)
  await environment.advance(60_000)
  expect(after).not.toHaveBeenCalled()
  const holder = holding(100)
  streams.open(holder).add(100)
  holder.pending = 0
  await environment.advance(60_000)
  expect(after).toHaveBeenCalledOnce()
})

interface TestHolder extends Holder {
  pending: number
  evict: ReturnType<typeof vi.fn<Holder['evict']>>
}

function holding(pending: number): TestHolder {
  return { pending, evict: vi.fn<Holder['evict']>() }
}

function open(options: Partial<ByteLedgerOptions> = {}, environment = createVirtualEnvironment()) {
  const megabyte = 1024 * 1024
  const limits = { maxStreamBytes: megabyte, maxAnswerBytes: megabyte, maxIncomingBytes: megabyte }
  const ledger = createByteLedger({
    ...limits,
    stallTimeoutMs: 60_000,
    environment,
    onAnswerEvicted: () => undefined,
    ...options,
  })
  onTestFinished(() => ledger.stop())
  return { ...ledger, environment }
}
