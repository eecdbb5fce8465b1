import assert from 'node:assert/strict'
import { isAfter, latest, origin, type Position } from '@rejoin/protocol'
import type { Log, TypedPosition } from '../log/contract.ts'
import { append, type Duties, entry, readAll } from './log-bench.ts'
import { createRandom } from './virtual-environment.ts'

/** Duties towards readers that ask for the last few events. They hold for a log that has `readBack`. */
export const backDuties: Duties = {
  async 'read backwards, a log gives what it gives forwards, down to where all of it is whole'({ open, environment }) {
    const log = await open({ maxEvents: 5 })
    const random = createRandom(7)
    const pick = (names: readonly string[]) => names[Math.floor(random() * names.length)] as string
    for (let round = 0; round < 80; round += 1) {
      const channels = Array.from({ length: 1 + Math.floor(random() * 4) }, () =>
        pick(['a/1', 'a/2', 'a/3', 'b/1', 'c']),
      )
      await append(
        log,
        channels.map((channel) => ({ ...entry(channel, `${round}`), type: pick(['message', 'other']) })),
      )
      if (random() < 0.03) await log.invalidate(pick(['a/1', 'b/1']))
      environment.stepClock(Math.floor(random() * 3))
    }
    for (const names of [['c'], ['a/1', 'b/1', 'c'], ['a/*'], ['*'], ['a/*', 'c'], ['nothing', 'nothing/*']]) {
      const windows = await log.windows(names)
      const whole = windows.reduce((position, window) => latest(position, window.trimmedThrough), log.history[0]!.first)
      for (const most of [1, 3, 1000]) {
        const back = await readBackAll(log, names, await log.head(), most)
        if (!back) continue
        assert.deepEqual(back.wholeAfter, whole)
        assert.deepEqual(
          back.positions.map(({ position, type }) => ({ position, type })).reverse(),
          (await readAll(log, names, whole)).map(({ position, type }) => ({ position, type })),
        )
      }
    }
  },

  async 'read backwards from a position, a log gives nothing past it'({ open }) {
    const log = await open()
    const [first, second] = await append(log, [entry('a/1', '1'), entry('a/1', '2'), entry('a/2', '3')])
    for (const names of [['a/1'], ['a/*'], ['a/1', 'a/2']]) {
      const page = await log.readBack?.(names, origin, second!.position, 10)
      if (page)
        assert.deepEqual(
          page.positions.map(({ position }) => position),
          [second!.position, first!.position],
        )
    }
  },
}

async function readBackAll(
  log: Log,
  names: readonly string[],
  head: Position,
  most: number,
): Promise<{ positions: TypedPosition[]; wholeAfter: Position } | undefined> {
  const positions: TypedPosition[] = []
  let wholeAfter = log.history[0]!.first
  for (let through = head; isAfter(through, wholeAfter); ) {
    const page = await log.readBack?.(names, wholeAfter, through, most)
    if (!page) return undefined
    assert.ok(isAfter(through, page.completeAfter), 'a page must lead on')
    positions.push(...page.positions)
    wholeAfter = latest(wholeAfter, page.wholeAfter)
    through = page.completeAfter
  }
  return { positions: positions.filter(({ position }) => isAfter(position, wholeAfter)), wholeAfter }
}
