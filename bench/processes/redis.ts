import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A redis-server with an append-only file, in a folder of its own. It ends with this process at the latest. */
export async function startRedis(port: number): Promise<RedisProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-bench-'))
  const appendOnly = ['--appendonly', 'yes', '--auto-aof-rewrite-percentage', '0']
  const child: ChildProcess = spawn(
    'redis-server',
    ['--port', `${port}`, '--dir', folder, '--save', '', ...appendOnly],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  process.once('exit', () => void child.kill('SIGKILL'))
  await new Promise<void>((resolve) => {
    child.stdout?.on('data', (text) => {
      if (String(text).includes('Ready to accept')) resolve()
    })
  })
  return {
    pid: child.pid as number,
    remove() {
      child.kill('SIGKILL')
      rmSync(folder, { recursive: true })
    },
  }
}

export interface RedisProcess {
  readonly pid: number
  remove(): void
}
