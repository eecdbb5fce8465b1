import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { createRandom } from '@rejoin/hub/testing'
import { ServerDidNotStart } from '../../support/server-process.ts'
import { until } from '../../support/until.ts'
import { type CrowdOptions, openCrowd, pathOf } from '../crowds/crowd.ts'
import { watchedHistory } from '../history/watched.ts'
import { type HubProcessOptions, startHub } from '../hubs/hub-process.ts'
import { openLastingHub } from '../hubs/lasting-hub.ts'
import { openStrictReader, throughHttp, waitForAll } from '../recorders/recorders.ts'

/**
 * Fills the disk under a hub until publishes are rejected, has somebody read from the beginning meanwhile, and gives the
 * space back. Then once more, with a hub that is killed and has to start on the full disk.
 */
export async function runFullDisk(options: FullDiskOptions): Promise<FullDiskOutcome> {
  const { seed, readers, eventsPerSecond, disk, channels, patience, rejections, onProgress } = options
  const reasons: string[] = []
  const history = watchedHistory(options.history, (line) => {
    if (line.kind === 'fail') reasons.push(line.why)
  })
  history.write({ kind: 'run', name: 'full-disk', seed, inputs: { readers, eventsPerSecond } })
  const directory = join(disk.path, 'log')
  const hubOptions = { ...options.hub, window: options.window, directory }
  const hub = await openLastingHub({
    random: createRandom(seed),
    start: (port) => startHub(history, { ...hubOptions, port }),
  })
  const isRejected = (times: number) => hub.running() && reasons.length >= times
  let startOnFullDisk = ''
  try {
    const send = throughHttp(hub.origin, 5000)
    const crowd = openCrowd({ ...options, history, originOf: () => hub.origin, send, resends: 1000, resendAfterMs: 50 })
    await crowd.renewed()
    const [first] = crowd.newest()
    // Something for a reader to read that starts from there while the disk is full.
    for (let round = 0; round < 20; round += 1) await crowd.renewed()

    history.write({ kind: 'fault', what: 'disk full' })
    disk.fill()
    await until('publishes are rejected', () => isRejected(rejections), patience.catchUpMs)
    onProgress?.(`full: ${reasons.at(-1)}`)
    const late = openStrictReader({
      ...{ history, who: 'late', channels, url: hub.origin + pathOf(channels), from: first?.id ?? null },
      ...patience.strict,
    })
    await waitForAll([late], crowd.newest(), patience.catchUpMs)
    disk.free()
    history.write({ kind: 'heal' })
    await crowd.renewed()
    onProgress?.('space again, and published again')

    history.write({ kind: 'fault', what: 'disk full, and kill -9' })
    disk.fill()
    const before = reasons.length
    await until('publishes are rejected again', () => isRejected(before + rejections), patience.catchUpMs)
    await hub.kill()
    startOnFullDisk = await hub.start().then(
      () => 'started',
      (error) => {
        if (error instanceof ServerDidNotStart && error.end.signal === null) return error.end.said
        throw error
      },
    )
    onProgress?.(`on a full disk: ${startOnFullDisk}`)
    disk.free()
    if (startOnFullDisk !== 'started') await hub.start()
    history.write({ kind: 'heal' })
    await crowd.renewed()
    await crowd.finish()
    late.close()
    await hub.stop()
  } finally {
    await hub.abandon()
  }
  return { reasons: [...new Set(reasons)], rejected: reasons.length, startOnFullDisk }
}

export interface FullDiskOptions extends Omit<CrowdOptions, 'originOf' | 'send' | 'resends' | 'resendAfterMs'> {
  readonly seed: number
  readonly disk: SmallDisk
  /** Publishes that have to be rejected before the space comes back. */
  readonly rejections: number
  readonly hub: HubProcessOptions
  onProgress?(text: string): void
}

export interface FullDiskOutcome {
  /** Each that was given for rejecting a publish. */
  readonly reasons: readonly string[]
  readonly rejected: number
  /** What a hub did that was started while the disk was full: `started`, or what it said before it ended. */
  readonly startOnFullDisk: string
}

/** A file system in memory, which root may make. */
export function mountSmallDisk(path: string, megabytes: number): SmallDisk {
  mkdirSync(path)
  mount('-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path)
  const ballast = join(path, 'ballast')
  return {
    path,
    fill() {
      const file = openSync(ballast, 'a')
      try {
        for (let size = 1024 * 1024; size >= 1; ) size = hasRoomFor(file, size) ? size : Math.floor(size / 16)
      } finally {
        closeSync(file)
      }
    },
    free: () => rmSync(ballast, { force: true }),
    forbidWrites: () => mount('-o', 'remount,ro', path),
    allowWrites: () => mount('-o', 'remount,rw', path),
    unmount() {
      run('umount', '--lazy', path)
    },
  }
}

export interface SmallDisk {
  readonly path: string
  /** To the last byte. */
  fill(): void
  free(): void
  /** While no file on it is open for writing. */
  forbidWrites(): void
  allowWrites(): void
  unmount(): void
}

function mount(...args: string[]): void {
  run('mount', ...args)
}

function run(command: string, ...args: string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${stderr}`)
}

function hasRoomFor(file: number, bytes: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(bytes)) > 0
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false
    throw error
  }
}
