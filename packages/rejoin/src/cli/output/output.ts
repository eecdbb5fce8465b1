import { fail, type ProgramHost } from '../program-host.ts'

/** What a command has to say on its standard output, at the pace of who reads it. */
export interface Output {
  /** Resolves when there is room for more. Once nobody reads any more, it writes nothing. */
  line(text: string): Promise<void>
  /** Aborted when nobody reads any more, as of `rejoin tail orders | head -1`, or it cannot be written, which has been told. */
  readonly closed: AbortSignal
}

export function createOutput(host: ProgramHost): Output {
  const { stdout } = host
  const closing = new AbortController()
  stdout.on('error', (cause) => {
    const { code, message } = cause as NodeJS.ErrnoException
    // A pipe whose reader has gone is the end of the work and no mistake. A full disk is one: somebody counts on that file.
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
