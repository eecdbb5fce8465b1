import { describe, expect, test } from 'vitest'
import type { Environment } from '../src/environment.ts'
import { createSliceQueue } from '../src/slice-queue.ts'

describe('long work leaves the event loop to others', () => {
  test('after five milliseconds in a turn', () => {
    const { turns, queue } = workbench()
    for (let slice = 0; slice < 20; slice += 1) queue.add(turns.takeOneMs)
    expect(turns.run()).toEqual([5, 5, 5, 5])
  })

  test('after one millisecond in a turn, while readers come in', () => {
    const { turns, queue } = workbench()
    queue.makeWay()
    for (let slice = 0; slice < 8; slice += 1) queue.add(turns.takeOneMs)
    // The second turn has a reader too, then none comes.
    expect(turns.run([queue.makeWay])).toEqual([1, 1, 5, 1])
  })

  test('when the clock of the machine steps back', () => {
    const { turns, queue } = workbench()
    for (let slice = 0; slice < 5; slice += 1) queue.add(turns.takeOneMs)
    queue.add(() => turns.stepBack(3_600_000))
    for (let slice = 0; slice < 10; slice += 1) queue.add(turns.takeOneMs)
    // The step ends its own turn. The turns after it have their whole time.
    expect(turns.run()).toEqual([5, 0, 5, 5])
  })
})

/** An event loop with a clock that work moves. */
function workbench() {
  let now = 0
  let due: (() => void)[] = []
  let taken = 0
  const environment = { now: () => now, endOfTurn: (task: () => void) => void due.push(task) } as Environment
  const turns = {
    takeOneMs() {
      now += 1
      taken += 1
    },
    stepBack(ms: number) {
      now -= ms
    },
    /** Milliseconds of work in each turn, until nothing is left. `arrivals` happen at the end of the turns, in order. */
    run(arrivals: (() => void)[] = []) {
      const worked: number[] = []
      while (due.length > 0) {
        worked.push(taken)
        taken = 0
        arrivals.shift()?.()
        const tasks = due
        due = []
        for (const task of tasks) task()
      }
      return worked
    },
  }
  return { turns, queue: createSliceQueue(environment) }
}
