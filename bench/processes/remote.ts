import { fork } from 'node:child_process'
import { once } from 'node:events'
import { constants, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Commands, Reply } from './commands.ts'
import { pinnedTo } from './cores.ts'

/** A child process whose commands are called as if they were functions of this one. */
export interface Remote<Known extends Commands> {
  readonly pid: number
  call<Name extends keyof Known & string>(
    name: Name,
    argument: Parameters<Known[Name]>[0],
  ): Promise<Awaited<ReturnType<Known[Name]>>>
  stop(): Promise<void>
}

export interface RemoteOptions {
  /** The core the process may use, where `taskset` can see to it. */
  readonly core: number
  /** Whether the process comes before others on its core, where this process may decide so. For one that measures latencies. */
  readonly first?: boolean
  readonly nodeFlags?: readonly string[]
}

// Over the longest command, a measuring interval. A child that hangs must fail the run, not outlast it.
const patienceMs = 120_000

export function startRemote<Known extends Commands>(program: URL, options: RemoteOptions): Remote<Known> {
  const { core, first = false, nodeFlags = [] } = options
  const [execPath, ...execArgv] = [...pinnedTo(core), process.execPath, ...nodeFlags]
  const child = fork(fileURLToPath(program), [], { execPath: execPath!, execArgv })
  if (first) putFirst(child.pid!)
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  let calls = 0

  child.on('message', (reply: Reply) => {
    const caller = waiting.get(reply.id)
    if ('error' in reply) caller?.reject(new Error(`${program.pathname}: ${reply.error}`))
    else caller?.resolve(reply.result)
  })
  child.on('exit', (code, signal) => {
    for (const { reject } of waiting.values()) reject(new Error(`${program.pathname} ended: ${signal ?? code}`))
  })

  return {
    pid: child.pid!,
    call(name, argument) {
      const id = calls
      calls += 1
      const late = () => waiting.get(id)?.reject(new Error(`${program.pathname}: no answer to ${name}`))
      const timer = setTimeout(late, patienceMs)
      const answer = new Promise<Awaited<ReturnType<Known[typeof name]>>>((resolve, reject) => {
        waiting.set(id, { resolve: resolve as (value: unknown) => void, reject })
      })
      child.send({ id, name, argument })
      return answer.finally(() => {
        clearTimeout(timer)
        waiting.delete(id)
      })
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

function putFirst(pid: number): void {
  try {
    setPriority(pid, constants.priority.PRIORITY_HIGHEST)
  } catch {
    // Only root may. Without it, latencies contain the time that the process waited for its core.
  }
}
