import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/** What is done to a server that is a process of its own, however it was started. */
export function serverProcess(child: ChildProcess, end: () => void): ServerProcess {
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-4000)
  })
  // Not `close`: a child that is left by `disconnect` never gets there.
  const ended = Promise.all([once(child, 'exit'), child.stderr && once(child.stderr, 'close')]).then(
    ([[code, signal]]): ServerEnd => ({ code, signal, said }),
  )

  async function endBy(way: () => void): Promise<ServerEnd> {
    if (child.exitCode === null && child.signalCode === null) way()
    return ended
  }

  return {
    pid: child.pid as number,
    ended,
    kill: () => endBy(() => child.kill('SIGKILL')),
    stop: () => endBy(end),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
  }
}

export interface ServerProcess {
  readonly pid: number
  /** Resolves when the process is gone, whoever ended it. */
  readonly ended: Promise<ServerEnd>
  /** By SIGKILL, without a chance to write anything. */
  kill(): Promise<ServerEnd>
  /** In order. */
  stop(): Promise<ServerEnd>
  pause(): void
  resume(): void
}

export interface ServerEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** The last it wrote to its standard error. */
  readonly said: string
}

export class ServerDidNotStart extends Error {
  readonly end: ServerEnd

  constructor(end: ServerEnd) {
    super(`The server ended with ${end.signal ?? end.code} before it was there. ${end.said}`)
    this.end = end
  }
}
