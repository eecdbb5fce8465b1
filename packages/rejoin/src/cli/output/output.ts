import { fail, type ProgramHost } from '../program-host.ts'

/** The standard output of a command, written at the speed of its reader. */
export interface Output {
  /** Writes a line, and resolves when there is room for more. Writes nothing once the output is closed. */
  line(text: string): Promise<void>
  /** Aborted when the reader has gone, as in `rejoin tail orders | head -1`, or when a write failed, which was reported. */
  readonly closed: AbortSignal
}

export function createOutput(host: ProgramHost): Output {
  const { stdout } = host
  const closing = new AbortController()
  stdout.on('error', (cause) => {
    const { code, message } = cause as NodeJS.ErrnoException
    // A pipe whose reader has gone ends the work without an error. Any other failure, such as a full disk, is an error.
    if (code !== 'EPIPE' && !closing.signal.aborted) fail(host, `Cannot write the output: ${message}.`)
    closing.abort()
  })

  return {
    async line(text) {
      if (closing.signal.aborted || stdout.write(`${text}\n`) !== false) return
      await new Promise<void>((resolve) => {
        stdout.once('drain', resolve)
        closing.signal.addEventListener('abort', () => resolve(), { once: true })
      })
    },
    closed: closing.signal,
  }
}
