import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { until } from '../../support/until.ts'

/** A server in another runtime, which tells of itself on standard output, a line of JSON each. */
export async function startRuntime(
  command: string,
  args: readonly string[],
  options: RuntimeOptions,
): Promise<Runtime> {
  const { hub = {}, folder, env } = options
  const child = spawn(command, args, {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env, REJOIN_HUB_OPTIONS: JSON.stringify(hub) },
  })
  // A run that is broken off must not leave it behind.
  const kill = () => void child.kill('SIGKILL')
  process.once('exit', kill)
  const ended = once(child, 'exit')
  const said: string[] = []
  const observed: Observed[] = []
  for (const output of [child.stdout, child.stderr]) {
    createInterface(output).on('line', (line) => {
      if (line.startsWith('{"kind":')) observed.push(JSON.parse(line))
      else said.push(line)
    })
  }
  const isOver = () => child.exitCode !== null || child.signalCode !== null
  const saw = async (kind: string, isMeant: (one: Observed) => boolean = () => true) => {
    const find = () => observed.find((one) => one.kind === kind && isMeant(one))
    await until(`the server tells of ${kind}`, () => find() !== undefined || isOver(), patienceMs)
    const found = find()
    if (!found) throw new Error(`The server ended before it told of ${kind}.\n${said.join('\n')}`)
    return found
  }

  async function printed(pattern: RegExp): Promise<string> {
    const find = () => said.map((line) => pattern.exec(line)?.[1]).find((found) => found !== undefined)
    await until(`the server prints ${pattern}`, () => find() !== undefined || isOver(), patienceMs)
    const found = find()
    if (found === undefined) throw new Error(`The server ended before it printed ${pattern}.\n${said.join('\n')}`)
    return found
  }

  async function close(): Promise<void> {
    process.off('exit', kill)
    child.kill('SIGKILL')
    await ended
  }

  async function stop(): Promise<void> {
    child.kill('SIGTERM')
    await ended
    process.off('exit', kill)
  }

  return { saw, printed, stop, close }
}

// A runtime may compile what it is given, on a machine that is busy.
const patienceMs = 60_000

export interface RuntimeOptions {
  /**
   * Given to `createHub`.
   * @defaultValue none
   */
  readonly hub?: Record<string, unknown>
  readonly folder?: string
  readonly env?: Record<string, string>
}

export interface Runtime {
  /** Resolves with the first of a kind that the server has told of, or will. */
  saw(kind: string, isMeant?: (one: Observed) => boolean): Promise<Observed>
  /** Resolves with the first group of a pattern, once a line of what it says besides has matched. */
  printed(pattern: RegExp): Promise<string>
  /** Asks the server to end, as an operator does. Resolves when it has ended. */
  stop(): Promise<void>
  close(): Promise<void>
}

export interface Observed {
  readonly kind: string
  readonly [detail: string]: unknown
}
