import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'vitest'
import { program } from '../../support/paths.ts'

/** The program in a process of its own, which can be killed, and started again on what it left. Ends with the test. */
export async function startServer(
  { onTestFinished }: TestContext,
  environment: Record<string, string> = {},
): Promise<ServerProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-server-'))
  let running = await start(0)
  onTestFinished(async () => {
    await running.kill()
    rmSync(folder, { recursive: true, force: true })
  })

  async function start(port: number) {
    const child = spawn(process.execPath, [program, 'serve', '--port', String(port)], {
      ...{ cwd: folder, env: { ...process.env, ...environment } },
    })
    const ended = once(child, 'close')
    const kill = async () => {
      child.kill('SIGKILL')
      await ended
    }
    let output = ''
    for await (const part of child.stdout.iterator({ destroyOnReturn: false })) {
      output += part
      const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(output) ?? []
      if (url) {
        // Unread, its lines would fill the pipe and stop it.
        child.stdout.resume()
        return { url, kill }
      }
    }
    throw new Error(`The program ended before it was ready: ${output}`)
  }

  return {
    url: running.url,
    kill: () => running.kill(),
    async restart() {
      running = await start(Number(new URL(running.url).port))
    },
  }
}

export interface ServerProcess {
  readonly url: string
  /** Gives it no time to end in order. */
  kill(): Promise<void>
  /** On the same port. */
  restart(): Promise<void>
}
