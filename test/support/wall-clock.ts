import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from './paths.ts'

/** The time of day of another process, which can be set. Needs a C compiler. */
export function createWallClock(): WallClock {
  const directory = mkdtempSync(join(tmpdir(), 'rejoin-wall-clock-'))
  const library = join(directory, 'wall-clock.so')
  const { status, stderr } = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`wall-clock.c does not compile: ${stderr}`)
  const control = join(directory, 'ahead')
  writeFileSync(control, BigInt64Array.of(0n))
  const file = openSync(control, 'r+')
  return {
    env: { LD_PRELOAD: library, REJOIN_WALL_CLOCK: control },
    set: (aheadMs) => void writeSync(file, BigInt64Array.of(BigInt(aheadMs)), 0, 8, 0),
    remove() {
      closeSync(file)
      rmSync(directory, { recursive: true })
    },
  }
}

export interface WallClock {
  /** For the process. */
  readonly env: Readonly<Record<string, string>>
  /** So many ms ahead of ours. */
  set(aheadMs: number): void
  remove(): void
}

const source = join(root, 'test/support/wall-clock.c')
