import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Answers, createAppends } from '../../../src/log/redis/appends.ts'
import { slots } from '../../../src/log/redis/script/script.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'] })
})

afterEach(() => {
  vi.useRealTimers()
})

test('a publish that comes alone goes out at the end of its turn', async () => {
  const { appends, calls } = start()
  void appends.add([event('1')], undefined, '')
  expect(calls).toHaveLength(0)
  await endOfTurn()
  expect(calls).toHaveLength(1)
})

test('publishes that come while a call is under way go out together when it is answered, each with its own outcome', async () => {
  const { appends, calls } = start()
  const first = appends.add([event('1')], undefined, '')
  await endOfTurn()
  const second = appends.add([event('2')], undefined, '')
  await endOfTurn()
  const third = appends.add([event('3')], undefined, '')
  await endOfTurn()
  expect(calls).toHaveLength(1)
  calls[0]!.answer(['5-0'])
  expect(await first).toEqual({ at: 5, outcome: '5-0' })
  await endOfTurn()
  expect(calls).toHaveLength(2)
  calls[1]!.answer(['6-0', 'ended c'])
  expect(await second).toEqual({ at: 5, outcome: '6-0' })
  expect(await third).toEqual({ at: 5, outcome: 'ended c' })
  expect(appends.waiting).toBe(0)
})

test('a publish that is rejected is rejected alone', async () => {
  const { appends, calls } = start()
  const first = appends.add([event('1')], undefined, '')
  const second = appends.add([event('2')], undefined, '')
  const third = appends.add([event('3')], undefined, '')
  await endOfTurn()
  calls[0]!.answer(['5-0', 'rejected c', '5-1'])
  await expect(second).rejects.toThrow('rejected c')
  expect(await first).toEqual({ at: 5, outcome: '5-0' })
  expect(await third).toEqual({ at: 5, outcome: '5-1' })
})

test('a call that is not answered holds nobody up for more than some milliseconds', async () => {
  const { appends, calls } = start()
  void appends.add([event('1')], undefined, '')
  await endOfTurn()
  void appends.add([event('2')], undefined, '')
  await endOfTurn()
  expect(calls).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(5)
  expect(calls).toHaveLength(2)
})

test('a call that is full waits for no other', async () => {
  const { appends, calls } = start()
  void appends.add([event('1')], undefined, '')
  await endOfTurn()
  for (let count = 0; count <= 128; count += 1) void appends.add([event('more')], undefined, '')
  expect(calls).toHaveLength(2)
})

test('while Redis is behind, calls grow, and none waits for more than some more milliseconds', async () => {
  const { appends, calls } = start()
  const add = (count: number) => {
    for (let added = 0; added < count; added += 1) void appends.add([event('1')], undefined, '')
  }
  add(2 * 128 + 1)
  expect(calls).toHaveLength(2)
  add(511)
  await endOfTurn()
  expect(calls).toHaveLength(2)
  add(1)
  expect(calls).toHaveLength(3)
  await endOfTurn()
  await vi.advanceTimersByTimeAsync(24)
  expect(calls).toHaveLength(3)
  await vi.advanceTimersByTimeAsync(1)
  expect(calls).toHaveLength(4)
})

test('a Redis that is far away is asked again as soon as it has answered a call, also for few publishes', async () => {
  const { appends, calls } = start()
  for (let turn = 0; turn < 3; turn += 1) {
    void appends.add([event('1')], undefined, '')
    await endOfTurn()
    await vi.advanceTimersByTimeAsync(5)
  }
  expect(calls).toHaveLength(2)
  calls[0]!.answer(['5-0'])
  await endOfTurn()
  expect(calls).toHaveLength(3)
})

test('publishes that gathered while Redis was behind go out before Redis has answered everything', async () => {
  const { appends, calls } = start()
  for (let added = 0; added < 3 * 128 + 1; added += 1) void appends.add([event('1')], undefined, '')
  expect(calls).toHaveLength(2)
  calls[0]!.answer(Array.from({ length: 128 }, (_, seq) => `5-${seq}`))
  await endOfTurn()
  expect(calls).toHaveLength(3)
})

test('a command that follows a publish is sent after it, also while a call is under way', async () => {
  const { appends, calls } = start()
  void appends.add([event('1')], undefined, '')
  await endOfTurn()
  void appends.add([event('2')], undefined, '')
  appends.flush()
  expect(calls).toHaveLength(2)
})

test('a log that closes waits for what was held back', async () => {
  const { appends, calls } = start()
  void appends.add([event('1')], undefined, '')
  await endOfTurn()
  const held = appends.add([event('2')], undefined, '')
  const settled = appends.settled()
  calls[1]!.answer(['6-0'])
  calls[0]!.answer(['5-0'])
  await settled
  expect(await held).toEqual({ at: 5, outcome: '6-0' })
})

test('no more calls are under way than Redis remembers, and the others go out in their order', async () => {
  const { appends, calls } = start()
  const full = Array.from({ length: 512 }, () => event('1'))
  const answers: string[] = []
  for (let count = 0; count < 600; count += 1) {
    void appends.add(full, undefined, '').then(({ outcome }) => answers.push(outcome))
  }
  const settled = appends.settled()
  expect(calls).toHaveLength(slots / 2)
  for (let count = 0; count < 600; count += 1) {
    await endOfTurn()
    expect(calls.length).toBeLessThanOrEqual(slots / 2 + count)
    calls[count]!.answer([`5-${count}`])
  }
  await settled
  expect(answers).toEqual(Array.from({ length: 600 }, (_, count) => `5-${count}`))
  expect(calls.map(({ number }) => number)).toEqual(answers.map((_, count) => `${count + 1}`))
})

test('publishes that wait for others to be answered fail with them', async () => {
  const { appends, calls } = start()
  const full = Array.from({ length: 512 }, () => event('1'))
  const added = Array.from({ length: slots }, () => appends.add(full, undefined, ''))
  appends.flush()
  const outcomes = Promise.allSettled(added)
  for (const call of calls) call.fail(new Error('away'))
  expect((await outcomes).every(({ status }) => status === 'rejected')).toBe(true)
  expect(calls).toHaveLength(slots / 2)
  expect(appends.waiting).toBe(0)
})

function start() {
  const calls: { number: string; answer(outcomes: string[]): void; fail(error: Error): void }[] = []
  const send = (number: string) =>
    new Promise<Answers>((resolve, reject) => {
      calls.push({ number, answer: (outcomes) => resolve({ at: 5, outcomes }), fail: reject })
    })
  const read = (outcome: string, at: number) => {
    if (outcome.startsWith('rejected')) throw new Error(outcome)
    return { at, outcome }
  }
  return { appends: createAppends(send, read), calls }
}

function event(data: string) {
  return { channel: 'c', type: 'message', data }
}

/** The immediates of this turn, and what follows from them. */
async function endOfTurn(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0)
}
