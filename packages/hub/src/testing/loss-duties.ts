import assert from 'node:assert/strict'
import { isAfter, type Position } from '@rejoin/protocol'
import type { Log, WindowOptions } from '../log/contract.ts'
import { append, appendAll, atMost, type Bench, type Duties, dataOf, entry, follow } from './log-bench.ts'

/** Duties of a log that can lose events and know of it. They are tested where the bench can roll the log back. */
export const lossDuties: Duties = {
  async 'a loss is a mark: everything before it stays readable, and no page crosses it'(bench) {
    const lossy = await loseOne(bench)
    if (!lossy) return
    const { log, start } = lossy
    assert.deepEqual(await readOver(log, ['a/1'], start), ['0', '1', 'a mark', 'next'])
    assert.deepEqual(await readOver(log, ['a/*'], start), ['0', '1', '2', 'a mark', 'next'])
    assert.deepEqual(await readOver(log, ['a/1', 'b'], start), ['0', '1', '3', 'a mark', 'next'])
    const [window] = await log.windows(['a/1'])
    assert.deepEqual([window?.events, window?.lost], [3, undefined])
  },

  async 'a channel that lost nothing has no mark'(bench) {
    const lossy = await loseOne(bench)
    if (!lossy) return
    const { log, start, mark } = lossy
    assert.deepEqual(await readOver(log, ['b', 'a/2'], start), ['2', '3'])
    const last = (await log.read(['a/1', 'b'], start, mark, atMost(10))).completeThrough
    const { gap } = await log.read(['a/1', 'b'], last, mark, atMost(10))
    assert.deepEqual(gap?.channels, ['a/1'])
  },

  async 'once everything before a mark is trimmed, the channel is trimmed through the mark'(bench) {
    const lossy = await loseOne(bench, { maxEvents: 1 })
    if (!lossy) return
    const { log, start, next } = lossy
    for (const selector of ['a/1', 'a/*']) {
      const { gap } = await log.read([selector], start, await log.head(), atMost(10))
      assert.deepEqual([gap?.reason, gap?.isMark], ['epoch', undefined])
      const page = await log.read([selector], gap!.wholeAfter, await log.head(), atMost(10))
      assert.deepEqual([page.gap, page.events.map(({ position }) => position)], [undefined, [next]])
    }
    const [window] = await log.windows(['a/1'])
    assert.deepEqual([window?.events, window?.lost], [1, 'epoch'])
  },

  async 'read backwards, a log gives the events before a mark, too'(bench) {
    const lossy = await loseOne(bench)
    if (!lossy) return
    const { log, start, next } = lossy
    for (const selector of ['a/1', 'a/*']) {
      const page = await log.readBack?.([selector], start, await log.head(), 10)
      if (page)
        assert.deepEqual([page.positions[0]?.position, page.positions.length], [next, selector === 'a/1' ? 3 : 4])
    }
  },

  async 'who is behind a mark reads on without a word, and the next event names the mark as the one before it'(bench) {
    const lossy = await loseOne(bench)
    if (!lossy) return
    const { log, mark } = lossy
    const page = await log.read(['a/1'], mark, await log.head(), atMost(10))
    assert.deepEqual([page.gap, page.events.map(dataOf), page.events[0]?.previous], [undefined, ['next'], mark])
  },
}

/** A log that has lost one event of `a/1`, after which another came. Undefined where no log can be rolled back. */
async function loseOne({ open, environment, rollBack }: Bench, window?: WindowOptions) {
  if (!rollBack) return undefined
  const before = await open(window)
  const start = await before.head()
  const tail = await follow(before, start)
  await appendAll(before, ['a/1', 'a/1', 'a/2', 'b'])
  const putBack = await rollBack(before)
  await append(before, [entry('a/1', 'lost')])
  await environment.settle()
  const log = await putBack()
  const [next] = await append(log, [entry('a/1', 'next')])
  await environment.settle()
  tail.close()
  const { gap } = await readToGap(log, start)
  return { log, start, next: next!.position, mark: gap!.wholeAfter }
}

async function readToGap(log: Log, start: Position) {
  for (let after = start; ; ) {
    const page = await log.read(['a/1'], after, await log.head(), atMost(10))
    if (page.gap || !isAfter(page.completeThrough, after)) return page
    after = page.completeThrough
  }
}

/** The data of all events, with a word where a mark is crossed. */
async function readOver(log: Log, selectors: readonly string[], start: Position): Promise<string[]> {
  const found: string[] = []
  const head = await log.head()
  for (let after = start; isAfter(head, after); ) {
    const page = await log.read(selectors, after, head, atMost(2))
    found.push(...page.events.map(dataOf))
    if (page.gap) {
      assert.deepEqual([page.gap.isMark, page.gap.reason, page.events.length], [true, 'epoch', 0])
      assert.ok(page.gap.channels.includes(selectors[0] as string))
      found.push('a mark')
    }
    after = page.gap?.wholeAfter ?? page.completeThrough
  }
  return found
}
