import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { program } from './paths.ts'
import { ServerDidNotStart, type ServerProcess, serverProcess } from './server-process.ts'

/**
 * `rejoin serve` as users run it, with nothing set but where it listens, where it keeps its events, and that its readers return
 * as soon as a hub allows: a client heeds what its hub tells it.
 */
export async function startProgram(options: ProgramOptions): Promise<ServerProcess> {
  const { directory, port, env, under = [], onLine } = options
  const serve = [program, 'serve', ...(directory === undefined ? [] : ['--data', directory]), '--port', `${port}`]
  const [command = '', ...args] = [...under, process.execPath, ...serve]
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { REJOIN_RETRY_MS: '500', ...process.env, ...env },
  })
  // A run that fails must not leave it behind: unlike a hub process, it does not know whose it is.
  const orphaned = () => void child.kill('SIGKILL')
  process.once('exit', orphaned)
  child.once('exit', () => void process.off('exit', orphaned))
  const server = serverProcess(child, () => child.kill('SIGTERM'))
  await new Promise<void>((resolve, reject) => {
    // Read to the end: it tells of every reader, and would have to stop if nobody listened.
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.includes('"server_ready"')) resolve()
      onLine?.(line)
    })
    void server.ended.then((end) => reject(new ServerDidNotStart(end)))
  })
  return server
}

export interface ProgramOptions {
  /**
   * Where it keeps its events.
   * @defaultValue what `env` says
   */
  readonly directory?: string
  readonly port: number
  /**
   * Added to our own.
   * @defaultValue none
   */
  readonly env?: Readonly<Record<string, string>>
  /**
   * A command to run it under, which has to end by becoming it.
   * @defaultValue none
   */
  readonly under?: readonly string[]
  /** Told every line it prints. */
  onLine?(line: string): void
}

/** What its log keeps, which it has no flags for. */
export const programWindow = { maxEvents: 10_000, maxAgeMs: 24 * 3_600_000, maxBytes: 64 * 1024 * 1024 }
