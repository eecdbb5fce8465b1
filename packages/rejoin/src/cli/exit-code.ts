import type { ErrorCode, RejoinError } from '@rejoin/protocol'

/** The exit codes of the program. `docs/reference/cli.md` has a line for each. */
export const exitCodes = {
  done: 0,
  failed: 1,
  refused: 2,
  notAllowed: 3,
  tryLater: 4,
  interrupted: 130,
  terminated: 143,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** The code tells a script what to do: correct the call, correct the event, get rights, or try again. */
export function exitCodeOf({ code, retryable }: RejoinError): ExitCode {
  return retryable ? exitCodes.tryLater : exitCodes[meanings[code] ?? 'failed']
}

const meanings: Partial<Record<ErrorCode, keyof typeof exitCodes>> = {
  'channel-ended': 'refused',
  'invalid-channel': 'refused',
  'invalid-data': 'refused',
  'invalid-event': 'refused',
  'invalid-type': 'refused',
  'key-reused': 'refused',
  'not-found': 'refused',
  'too-large': 'refused',
  forbidden: 'notAllowed',
  unauthorized: 'notAllowed',
  unreachable: 'tryLater',
}
