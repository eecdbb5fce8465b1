import { spawnSync } from 'node:child_process'
import { closeSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../../support/paths.ts'

/** A disk that can be told to report errors to a hub, for the file of its log. Needs a C compiler. */
export function createDiskErrors(directory: string): DiskErrors {
  const library = join(directory, 'disk-errors.so')
  const { status, stderr } = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl'], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`disk-errors.c does not compile: ${stderr}`)
  const control = join(directory, 'disk-errors')
  writeFileSync(control, Buffer.alloc(4 * (1 + kinds.length)))
  const file = openSync(control, 'r+')
  const say = (word: number) => void writeSync(file, Uint32Array.of(word), 0, 4, 0)

  return {
    env: { LD_PRELOAD: library, REJOIN_DISK_ERRORS: control },
    begin: (kind) => say(1 + kinds.indexOf(kind)),
    end: () => say(0),
    count(kind) {
      const counted = new Uint32Array(1)
      readSync(file, counted, 0, 4, 4 * (1 + kinds.indexOf(kind)))
      return counted[0] as number
    },
    close: () => closeSync(file),
  }
}

/**
 * `pages`: several that a commit has changed, and that lie together. `single-pages`: one that lies by itself. `flushes`: of
 * all of them. `roots`: what makes them count, which the system then has and the disk perhaps not.
 */
export type DiskError = 'pages' | 'single-pages' | 'flushes' | 'roots'

export interface DiskErrors {
  /** For the hub's process. */
  readonly env: Readonly<Record<string, string>>
  /** From now on these fail. */
  begin(kind: DiskError): void
  end(): void
  /** How often one has failed so far. */
  count(kind: DiskError): number
  close(): void
}

// In the order of disk-errors.c.
const kinds: readonly DiskError[] = ['pages', 'single-pages', 'flushes', 'roots']

const source = join(root, 'test/faults/disk/disk-errors.c')
