import type { LogLevel } from '@rejoin/hub/operations'
import type { Logging } from './logging.ts'
import { hasColour } from './style.ts'
import { terminal } from './terminal.ts'

/** Lines for a person when the output is a terminal; JSON lines for a program otherwise. */
export async function createLogging({ stdout, env }: LoggingHost, level?: LogLevel): Promise<Logging> {
  if (stdout.isTTY) {
    return terminal({ write: (text) => stdout.write(text), colour: hasColour(stdout, env), now: Date.now })
  }
  // Loaded on demand: a person at a terminal waits 20 ms less for the first line.
  const { jsonLines } = await import('./json-lines.ts')
  return jsonLines(stdout, level)
}

export interface LoggingHost {
  readonly stdout: { readonly isTTY?: boolean; readonly fd?: number; write(text: string): unknown }
  readonly env: Readonly<Record<string, string | undefined>>
}
