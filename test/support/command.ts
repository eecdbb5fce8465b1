import { spawn } from 'node:child_process'
import { once } from 'node:events'

export interface Command {
  /** Resolves with the match as soon as the program has printed it; rejects with all it said when it ends without. */
  prints(pattern: RegExp): Promise<RegExpExecArray>
  /** Asks the program to end, waits until it has, and resolves with its exit code. */
  stop(): Promise<number | null>
}

export function startCommand(command: string, args: string[], folder: string): Command {
  const child = spawn(command, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'close')
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }

  return {
    prints: (pattern) =>
      new Promise((resolve, reject) => {
        const check = () => {
          const match = pattern.exec(output)
          if (match !== null) resolve(match)
        }
        child.stdout.on('data', check)
        ended.then(() => reject(new Error(`${command} ${args.join(' ')} ended without ${pattern}:\n${output}`)), reject)
        check()
      }),
    stop: async () => {
      child.kill('SIGTERM')
      await ended
      return child.exitCode
    },
  }
}
