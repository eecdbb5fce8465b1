import { plainLines } from '@rejoin/hub/internal'
import type { LoggingHost } from '../logging/choose-logging.ts'
import { type ExitCode, exitCodes } from './exit-code.ts'

/** The part of `process` that the program uses. */
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

/** Prints why the program failed. Control characters are replaced, because the message may quote a hub or a file. */
export function fail(host: ProgramHost, message: string, exitCode: ExitCode = exitCodes.failed): void {
  host.stderr.write(`rejoin: ${plainLines(message)}\n`)
  host.exitCode = exitCode
}

/** The command as the user would type it: `npm start --`, if the program was started so, else `rejoin serve`. */
export function commandWith(flags: string, { env }: ProgramHost): string {
  const command = env.npm_lifecycle_event === 'start' ? `npm start -- ${flags}` : `rejoin serve ${flags}`
  return command.replace(/(?: --)? $/, '')
}
