import { fail, type ProgramHost } from './program-host.ts'

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

/**
 * JSON as one line without characters that a terminal would obey. The escaped characters occur only inside of strings, where the
 * escape means the same. Line breaks occur only between tokens, where a space means the same.
 */
export function jsonLine(json: string): string {
  return json.replaceAll(/[\n\r]/g, ' ').replaceAll(obeyed, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

// Characters that `JSON.stringify` does not escape: DEL, C1, line separators, and marks that change the reading direction.
const obeyed = /[\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g
