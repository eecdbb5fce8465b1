import { spawnSync } from 'node:child_process'
import { closeSync, copyFileSync, existsSync, ftruncateSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'

/**
 * A disk of its own, in a file, whose file system can be made to find itself damaged: it then rejects every write from one moment
 * to the next, under files that are open, as a server's disk does when it fails. Needs root on Linux, and mkfs.ext4.
 */
export function mountBreakingDisk(folder: string, megabytes: number): BreakingDisk {
  const [image, path] = [join(folder, 'image'), join(folder, 'disk')]
  const file = openSync(image, 'w')
  ftruncateSync(file, megabytes * 1024 * 1024)
  closeSync(file)
  mkdirSync(path)
  run('mkfs.ext4', '-q', '-F', '-e', 'remount-ro', image)
  const mount = (device: string) => run('mount', '-o', 'loop,errors=remount-ro', device, path)
  mount(image)
  return {
    path,
    breakDown() {
      const device = basename(run('findmnt', '-no', 'SOURCE', path).trim())
      writeFileSync(`/sys/fs/ext4/${device}/trigger_fs_error`, 'for a test\n')
    },
    repair() {
      run('umount', path)
      // A new device: another process with a mount namespace of its own may still hold the old one, and mounting that again would
      // give the same read-only file system.
      const repaired = join(folder, 'repaired')
      copyFileSync(image, repaired)
      // Ends with 1 when it has corrected something.
      spawnSync('e2fsck', ['-p', repaired])
      mount(repaired)
    },
    unmount: () => void spawnSync('umount', [path]),
  }
}

export interface BreakingDisk {
  readonly path: string
  /** From now on every write fails: the file system is read-only. */
  breakDown(): void
  /** Nobody may have a file of it open. */
  repair(): void
  unmount(): void
}

/** Whether this machine has what it takes. */
export function canBreakDisks(): boolean {
  const isThere = (command: string) => spawnSync(command, ['-V']).error === undefined
  // Root of a container may not mount.
  const mayMount = spawnSync('unshare', ['-m', 'true']).status === 0
  return mayMount && existsSync('/dev/loop-control') && ['mkfs.ext4', 'e2fsck', 'findmnt'].every(isThere)
}

function run(command: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`)
  return stdout
}
