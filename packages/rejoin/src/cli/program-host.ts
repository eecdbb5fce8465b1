import { plainLines } from '@rejoin/hub/internal'
import type { LoggingHost } from '../logging/choose-logging.ts'
import { type ExitCode, exitCodes } from './exit-code.ts'

/** The part of `process` that the program lives in. */
export interface ProgramHost extends LoggingHost {
  readonly stdin: AsyncIterable<string | Uint8Array> & { readonly isTTY?: boolean }
  readonly stdout: LoggingHost['stdout'] & OutputEvents
  readonly stderr: { readonly isTTY?: boolean; readonly columns?: number; write(text: string): unknown }
  exitCode?: number | string | null | undefined
  on(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP', listener: () => void): unknown
  on(mistake: 'uncaughtException' | 'unhandledRejection', listener: (cause: unknown) => void): unknown
  exit(code: number): void
}

interface OutputEvents {
  on(event: 'error', listener: (cause: unknown) => void): unknown
  once(event: 'drain', listener: () => void): unknown
}

/** Says why the program could not do what it was asked to. Some of the words may be those of a hub, or of a file. */
export function fail(host: ProgramHost, message: string, exitCode: ExitCode = exitCodes.failed): void {
  host.stderr.write(`rejoin: ${plainLines(message)}\n`)
  host.exitCode = exitCode
}

/** In the words with which the program was started. */
export function commandWith(flags: string, { env }: ProgramHost): string {
  const command = env.npm_lifecycle_event === 'start' ? `npm start -- ${flags}` : `rejoin serve ${flags}`
  return command.replace(/(?: --)? $/, '')
}
