import { join } from 'node:path'
import { createRandom } from '@rejoin/hub/testing'
import { programWindow, startProgram } from '../../support/program.ts'
import { until } from '../../support/until.ts'
import { type CrowdOptions, openCrowd, pathOf } from '../crowds/crowd.ts'
import { watchedHistory } from '../history/watched.ts'
import { openLastingHub } from '../hubs/lasting-hub.ts'
import { openStrictReader, throughHttp, waitForAll } from '../recorders/recorders.ts'
import { createDiskErrors, type DiskError } from './disk-errors.ts'

/**
 * Has the disk under `rejoin serve` report errors, one kind after the other; somebody reads from the beginning meanwhile,
 * and the disk works again. Then each kind once more, and the hub is killed before it does.
 */
export async function runIoErrors(options: IoErrorsOptions): Promise<IoErrorsOutcome> {
  const { seed, readers, eventsPerSecond, channels, patience, rejections, directory, onProgress } = options
  const kinds = options.kinds ?? (['pages', 'flushes', 'roots'] as const)
  const reasons: string[] = []
  let lines = 0
  const history = watchedHistory(options.history, (line) => {
    if (line.kind === 'fail') reasons.push(line.why)
    if (line.kind === 'close') lines += 1
  })
  history.write({ kind: 'run', name: 'io-errors', seed, inputs: { readers, eventsPerSecond } })
  const disk = createDiskErrors(directory)
  const hub = await openLastingHub({
    random: createRandom(seed),
    start: (port) => startProgram({ directory: join(directory, 'log'), port, env: disk.env }),
  })
  let cutByErrors = 0
  try {
    const send = throughHttp(hub.origin, 5000)
    const reach = { originOf: () => hub.origin, send, resends: 1000, resendAfterMs: 50 }
    const crowd = openCrowd({ ...options, ...reach, history, window: programWindow })
    await crowd.renewed()
    const [first] = crowd.newest()
    // Something for a reader to read that starts from there while the disk fails.
    for (let round = 0; round < 20; round += 1) await crowd.renewed()

    for (const end of ['heal', 'kill'] as const) {
      for (const kind of kinds) {
        const before = { rejected: reasons.length, failed: disk.count(kind), lines }
        history.write({ kind: 'fault', what: `${kind} fail, then ${end}` })
        disk.begin(kind)
        await until(
          `${kind} fail and publishes are rejected`,
          () => hub.running() && reasons.length >= before.rejected + rejections,
          patience.catchUpMs,
        )
        const late = openStrictReader({
          ...{ history, who: `late-${kind}-${end}`, channels, url: hub.origin + pathOf(channels) },
          ...{ from: first?.id ?? null, ...patience.strict },
        })
        await waitForAll([late], crowd.newest(), patience.catchUpMs)
        cutByErrors += lines - before.lines
        late.close()
        if (end === 'kill') await hub.kill()
        disk.end()
        if (end === 'kill') await hub.start()
        history.write({ kind: 'heal' })
        await crowd.renewed()
        const failed = disk.count(kind) - before.failed
        onProgress?.(
          `${kind} failed ${failed} times, then ${end}: ${reasons.length - before.rejected} publishes rejected`,
        )
      }
    }
    await crowd.finish()
    await hub.stop()
  } finally {
    disk.close()
    await hub.abandon()
  }
  return { reasons: [...new Set(reasons)], rejected: reasons.length, cutByErrors }
}

export interface IoErrorsOptions
  extends Omit<CrowdOptions, 'window' | 'originOf' | 'send' | 'resends' | 'resendAfterMs'> {
  readonly seed: number
  /** For the log, and for what makes it fail. */
  readonly directory: string
  /** Publishes that have to be rejected before the disk works again. */
  readonly rejections: number
  /**
   * What fails, one after the other.
   * @defaultValue all but single pages, over which lmdb 3.5 may end the process
   */
  readonly kinds?: readonly DiskError[]
  onProgress?(text: string): void
}

export interface IoErrorsOutcome {
  /** Each that was given for rejecting a publish. */
  readonly reasons: readonly string[]
  readonly rejected: number
  /** Lines of readers that ended while the disk reported errors and the hub lived. */
  readonly cutByErrors: number
}
