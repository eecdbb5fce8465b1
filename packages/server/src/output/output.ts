import type { ProgramHost } from '../program-host.ts'

/** What a command has to say on its standard output, at the pace of who reads it. */
export interface Output {
  /** Resolves when there is room for more. Once nobody reads any more, it writes nothing. */
  line(text: string): Promise<void>
  /** Aborted when nobody reads any more: `rejoin tail orders | head -1`. */
  readonly closed: AbortSignal
}

export function createOutput({ stdout }: ProgramHost): Output {
  const closing = new AbortController()
  // A pipe whose reader has gone is the end of the work and no mistake.
  stdout.on('error', () => closing.abort())

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
