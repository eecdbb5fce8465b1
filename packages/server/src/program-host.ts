import type { AnnouncerHost } from './announce.ts'

/** The part of `process` that the program lives in. */
export interface ProgramHost extends AnnouncerHost {
  readonly stderr: { write(text: string): unknown }
  exitCode?: number | string | null | undefined
  on(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP', listener: () => void): unknown
  on(mistake: 'uncaughtException' | 'unhandledRejection', listener: (cause: unknown) => void): unknown
  exit(code: number): void
}

/** Says why the program could not do what it was asked to. */
export function fail(host: ProgramHost, message: string): void {
  host.stderr.write(`rejoin: ${message}\n`)
  host.exitCode = 1
}
