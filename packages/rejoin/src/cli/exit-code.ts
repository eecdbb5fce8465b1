import type { ErrorCode, RejoinError } from '@rejoin/protocol'

/** The exit codes of the program. `docs/reference/cli.md` has a line for each. */
export const exitCodes = {
  done: 0,
  failed: 1,
  rejected: 2,
  notAllowed: 3,
  tryLater: 4,
  interrupted: 130,
  terminated: 143,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** The code tells a script what to do: correct the call, correct the event, get rights, or try again. */
export function exitCodeOf({ code, retryable }: Pick<RejoinError, 'code' | 'retryable'>): ExitCode {
  return retryable ? exitCodes.tryLater : exitCodes[meanings[code] ?? 'failed']
}

const meanings: Partial<Record<ErrorCode, keyof typeof exitCodes>> = {
  'channel-ended': 'rejected',
  'invalid-channel': 'rejected',
  'invalid-data': 'rejected',
  'invalid-event': 'rejected',
  'invalid-type': 'rejected',
  'key-reused': 'rejected',
  'not-found': 'rejected',
  'too-large': 'rejected',
  forbidden: 'notAllowed',
  unauthorized: 'notAllowed',
  unreachable: 'tryLater',
}
