import { spawnSync } from 'node:child_process'

/** The server's core and that of everything that makes load. */
export const cores = { server: 0, load: 1 }

let pinning: boolean | undefined

/** Whether processes can be kept to their cores. Where not, server and load client push each other around. */
export function canPin(): boolean {
  pinning ??= spawnSync('taskset', ['-c', `${cores.server},${cores.load}`, 'true']).status === 0
  return pinning
}

/** The words before a command that keep it to one core. */
export function pinnedTo(core: number): string[] {
  return canPin() ? ['taskset', '-c', String(core)] : []
}
