import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** A redis-server of one's own, on a port and in a folder of its own, to be killed and started again. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const directory = mkdtempSync(join(tmpdir(), 'rejoin-redis-'))
  let port = somePort()
  let child: ChildProcess | undefined
  // A test that fails must not leave it behind.
  const orphaned = () => void child?.kill('SIGKILL')
  process.on('exit', orphaned)

  async function start(args: readonly string[] = []): Promise<void> {
    const settings = { port, bind: '127.0.0.1', dir: directory, save: '', appendonly: 'yes', ...options.settings }
    const given = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
    child = spawn(options.program ?? 'redis-server', [...given, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...options.env },
    })
    const started = child
    await new Promise<void>((resolve, reject) => {
      let said = ''
      started.stdout?.setEncoding('utf8').on('data', (text: string) => {
        said = (said + text).slice(-4000)
        if (/Ready to accept connections/.test(said)) resolve()
      })
      started.once('exit', () => reject(new NotStarted(said)))
      started.once('error', reject)
    })
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const ending = child
    child = undefined
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return
    const gone = once(ending, 'exit')
    ending.kill(signal)
    // One that was stopped hears no other signal than SIGKILL.
    if (signal !== 'SIGKILL') ending.kill('SIGCONT')
    await gone
  }

  async function startAnywhere(): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await start()
      } catch (error) {
        if (!(error instanceof NotStarted && error.isTaken) || tries === 20) throw error
        port = somePort()
      }
    }
  }

  await startAnywhere()
  return {
    port,
    directory,
    start,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    empty() {
      rmSync(directory, { recursive: true })
      mkdirSync(directory)
    },
    written: () => statSync(newestFile(directory)).size,
    cutTo: (bytes) => truncateSync(newestFile(directory), bytes),
    async remove() {
      await end('SIGKILL')
      process.off('exit', orphaned)
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

export interface RedisServerOptions {
  /** @defaultValue 'redis-server' */
  readonly program?: string
  /** Lines of its configuration, over those that keep it to itself and write an append-only file. */
  readonly settings?: Readonly<Record<string, string | number>>
  /**
   * Added to our own.
   * @defaultValue none
   */
  readonly env?: Readonly<Record<string, string>>
}

export interface RedisServer {
  readonly port: number
  readonly directory: string
  /** Again, on what it left behind. */
  start(args?: readonly string[]): Promise<void>
  kill(): Promise<void>
  stop(): Promise<void>
  pause(): void
  resume(): void
  /** Takes everything it has written away; while it is down. */
  empty(): void
  /** How long its append-only file is. */
  written(): number
  /** Takes from the append-only file what was written later, as a power cut does; while it is down. */
  cutTo(bytes: number): void
  remove(): Promise<void>
}

/** Where the append-only file grows. It has other parts only after it was rewritten. */
function newestFile(directory: string): string {
  const folder = join(directory, 'appendonlydir')
  const name = readdirSync(folder).find((file) => file.endsWith('.incr.aof'))
  return join(folder, name as string)
}

/** Resolves when a replica has everything that its master has now. */
export async function replicated({ port }: Pick<RedisServer, 'port'>): Promise<void> {
  for (const deadline = performance.now() + 20_000; performance.now() < deadline; ) {
    const info = await askRedis(port, 'INFO', 'replication')
    const offset = /^master_repl_offset:(\d+)/m.exec(info)?.[1]
    if (offset && new RegExp(`state=online,offset=${offset},`).test(info)) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error('The replica did not come up with its master.')
}

/** Asks as an operator would, over a connection of its own. */
export async function askRedis(port: number, ...command: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('redis-cli', ['-p', String(port), ...command])
  return stdout
}

/**
 * Below those that the system gives to connections, which would take it while the server is away; and so is the one 10,000
 * above it, where a node of a Cluster talks to the others.
 */
function somePort(): number {
  return 10_000 + Math.floor(Math.random() * 12_000)
}

class NotStarted extends Error {
  readonly isTaken: boolean

  constructor(said: string) {
    super(`redis-server did not start. ${said}`)
    this.isTaken = /Address already in use/.test(said)
  }
}
