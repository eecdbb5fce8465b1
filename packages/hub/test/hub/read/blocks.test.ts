import type { Position } from '@rejoin/protocol'
import { expect, test } from 'vitest'
import { systemEnvironment } from '../../../src/environment.ts'
import { type Blocks, createBlocks } from '../../../src/hub/read/blocks.ts'
import type { Log, Page } from '../../../src/log/contract.ts'
import { createSliceQueue } from '../../../src/slice-queue.ts'

// The head of a branch that is lost may be past everything that the log has afterwards. What was asked for up to there must not
// count as read when the log comes to those positions (§4.6).

test('a read that waited for its turn while the log changed its branch is kept for nobody', async () => {
  const { blocks, reads, answerAll } = stage()
  const others = ['b', 'c', 'd', 'e'].map((name) => blocks.read(name, at(1), at(25)))
  const stale = blocks.read('a', at(22), at(25))
  await answered()
  expect(reads).toHaveLength(4)
  blocks.clear()
  await answerAll()
  await Promise.all([...others, stale])
  expect(await readNow(blocks, answerAll)).toMatchObject({ through: at(24) })
})

test('a reader whose read goes on after the log has changed its branch asks for nothing up to the old head', async () => {
  const { blocks, reads, answer, answerAll } = stage()
  const stale = blocks.read('a', at(22), at(25))
  await answered()
  blocks.clear()
  // The block at the round position ends before the cursor, so there is more to read.
  answer({ events: [], completeThrough: at(10) })
  expect(await stale).toMatchObject({ frames: [], through: at(22) })
  expect(reads).toHaveLength(0)
  expect(await readNow(blocks, answerAll)).toMatchObject({ through: at(24) })
})

async function readNow(blocks: Blocks, answerAll: () => Promise<void>) {
  const reading = blocks.read('a', at(22), at(24))
  await answerAll()
  return reading
}

function stage() {
  const reads: { through: Position; resolve(page: Page): void }[] = []
  const log = {
    read: (_names: unknown, _after: unknown, through: Position) =>
      new Promise<Page>((resolve) => void reads.push({ through, resolve })),
  } as unknown as Log
  const slices = createSliceQueue(systemEnvironment)
  const blocks = createBlocks({ log, maxBytes: 1e6, slices, encode: () => [] })
  const answer = (page: Page) => reads.shift()?.resolve(page)
  return {
    blocks,
    reads,
    answer,
    async answerAll() {
      for (await answered(); reads.length > 0; await answered()) {
        answer({ events: [], completeThrough: reads[0]!.through })
      }
    },
  }
}

const at = (seq: number): Position => ({ ms: 0, seq })

/** What is under way in promises has come to rest. */
const answered = () => new Promise<void>((resolve) => setImmediate(resolve))
