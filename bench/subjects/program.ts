import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { cores, pinnedTo } from '../processes/cores.ts'

export interface RunningProgram {
  readonly pid: number
  readonly port: number
  stop(): Promise<void>
}

/** `rejoin serve` as its users start it, with its data in a folder. */
export async function startProgram(folder: string): Promise<RunningProgram> {
  const program = fileURLToPath(new URL('../bin/rejoin.js', import.meta.resolve('rejoin')))
  const words = [...pinnedTo(cores.server), process.execPath, program, 'serve', '--port', '0', '--data', folder]
  const child = spawn(words[0]!, words.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string]
  const { url } = JSON.parse(line) as { url: string }
  child.stdout.resume()
  return {
    pid: child.pid!,
    port: Number(new URL(url).port),
    async stop() {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}
