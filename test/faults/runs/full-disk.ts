/** The disk filled under the hub until it rejects publishes, twice, the second time with a kill. Needs root for a tmpfs. */
import { join } from 'node:path'
import { mountSmallDisk, runFullDisk } from '../disk/full-disk.ts'
import { longRun } from '../long-run.ts'

const heartbeatMs = 1000

await longRun({
  name: 'full-disk',
  inputs: { readers: 20, rate: 500, megabytes: 64, rejections: 2000 },
  async run({ seed, readers, rate, megabytes, rejections }, history, progress, folder) {
    const disk = mountSmallDisk(join(folder, 'disk'), megabytes)
    try {
      const { rejected, reasons } = await runFullDisk({
        ...{ history, seed, disk, readers, eventsPerSecond: rate, rejections },
        channels: ['orders/1', 'orders/2', 'stock'],
        window: { maxEvents: 50_000, maxAgeMs: 24 * 3_600_000 },
        hub: { heartbeatMs },
        patience: { client: { maxRetryMs: 5000 }, strict: { silenceMs: 2 * heartbeatMs + 5000 }, catchUpMs: 60_000 },
        onProgress: progress,
      })
      progress(`${rejected} publishes were rejected, for ${reasons.length} reasons:`)
      for (const reason of reasons) console.log(`        ${reason}`)
    } finally {
      disk.unmount()
    }
  },
})
