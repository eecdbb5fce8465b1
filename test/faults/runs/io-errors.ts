/**
 * The disk reports errors to `rejoin serve`: for pages, for flushes, for roots; healed, then with a kill. Needs a C compiler.
 *
 * With --single-pages 1, for pages that are written one by one, over which lmdb 3.5 may end the program: the run then ends with
 * what it said.
 */
import { runIoErrors } from '../disk/io-errors.ts'
import { longRun } from '../long-run.ts'

await longRun({
  name: 'io-errors',
  inputs: { readers: 20, rate: 200, rejections: 500, 'single-pages': 0 },
  async run({ seed, readers, rate, rejections, ...which }, history, progress, directory) {
    const { rejected, reasons, cutByErrors } = await runIoErrors({
      ...{ history, seed, directory, readers, eventsPerSecond: rate, rejections },
      ...(which['single-pages'] > 0 ? { kinds: ['single-pages'] } : {}),
      channels: ['orders/1', 'orders/2', 'stock'],
      patience: { client: { maxRetryMs: 5000 }, strict: { silenceMs: 55_000 }, catchUpMs: 60_000 },
      onProgress: progress,
    })
    progress(`${cutByErrors} lines of readers ended while the disk failed`)
    progress(`${rejected} publishes were rejected, for ${reasons.length} reasons:`)
    for (const reason of reasons) console.log(`        ${reason}`)
  },
})
