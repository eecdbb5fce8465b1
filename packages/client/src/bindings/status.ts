import { report } from '../handler-set.ts'
import type { ConnectionView } from './stream-store.ts'

/**
 * The words that show a connection, the same for every framework.
 *
 * @returns `null` when there is nothing to show: no stream has been opened, or its owner has closed it
 */
export function statusOf(connection: ConnectionView, given?: Partial<StatusWords>): Status | null {
  const kind = kindOf(connection)
  if (!kind) return null
  const words = { ...english, ...given }
  const { retryInSeconds } = connection
  const isWaiting = kind === 'waiting'
  const counted = retryInSeconds && !isWaiting ? `${words[kind]} ${words.countdown}` : words[kind]
  const button = buttonOf(kind, connection)
  return {
    kind,
    text: counted.replace('{seconds}', `${retryInSeconds}`),
    // A screen reader would read a countdown aloud every second.
    spoken: words[isWaiting ? 'reconnecting' : kind],
    button: button && words[button],
  }
}

/**
 * Carries out the button. When credentials are missing, a login comes first. The stream goes on at its cursor. When the
 * login fails, that is reported and the button stays.
 */
export async function pressButton({ closeReason, reconnect }: ConnectionView, signIn?: () => unknown): Promise<void> {
  try {
    if (isSignInNeeded(closeReason)) await signIn?.()
    reconnect()
  } catch (error) {
    report(error)
  }
}

function kindOf({ state, stale, opened, closeReason, nextRetryAt }: ConnectionView): Status['kind'] | null {
  if (state === 'connecting') return opened ? 'reconnecting' : state
  if (state === 'connected') return stale ? 'stale' : 'live'
  if (state === 'closed' && (!closeReason || closeReason === state)) return null
  if (state === 'backoff' && !nextRetryAt) return 'paused'
  const named = kinds[closeReason ?? '']
  if (named) return named
  if (closeReason?.startsWith('http-')) return 'rejected'
  if (!opened) return 'unreachable'
  return state === 'closed' ? state : 'waiting'
}

function buttonOf(kind: Status['kind'], { state, stale, closeReason }: ConnectionView): Button | undefined {
  if (isSignInNeeded(closeReason)) return 'signIn'
  // Where the server would give the same answer again, a button would promise too much.
  if (state === 'closed') return ['closed', 'unreachable', 'wrongType'].includes(kind) ? 'tryAgain' : undefined
  // Also while the attempt runs, so that the button keeps the keyboard focus.
  return stale && state !== 'connected' ? 'retryNow' : undefined
}

function isSignInNeeded(closeReason: ConnectionView['closeReason']): boolean {
  return closeReason === 'unauthorized' || closeReason === 'no-credentials'
}

const kinds: Partial<Record<string, Status['kind']>> = {
  finished: 'ended',
  unauthorized: 'signedOut',
  'no-credentials': 'signInFailed',
  'http-403': 'forbidden',
  'http-404': 'notFound',
  'http-410': 'gone',
  'wrong-content-type': 'wrongType',
  'too-large': 'tooLarge',
  maintenance: 'maintenance',
  overloaded: 'overloaded',
}

const english: StatusWords = {
  connecting: 'Connecting…',
  reconnecting: 'Reconnecting…',
  live: 'Live',
  stale: 'May be out of date',
  waiting: 'Reconnecting in {seconds} s…',
  unreachable: 'Cannot connect.',
  maintenance: 'Under maintenance.',
  overloaded: 'The server is busy.',
  signInFailed: 'Cannot sign in.',
  countdown: 'Next attempt in {seconds} s…',
  paused: 'Paused',
  closed: 'Connection lost',
  signedOut: 'Signed out',
  forbidden: 'No access',
  notFound: 'Not found',
  gone: 'No longer available',
  rejected: 'Rejected by the server',
  wrongType: 'Unexpected answer from the server',
  tooLarge: 'An event is too large',
  ended: 'Ended',
  retryNow: 'Retry now',
  tryAgain: 'Try again',
  signIn: 'Sign in',
}

/** The words that are shown and spoken. Replace them for another language or another tone. */
export interface StatusWords {
  /** Also while later attempts run, until the first connection is made. */
  connecting: string
  /** Also spoken instead of a countdown. */
  reconnecting: string
  live: string
  /** A heartbeat is overdue. */
  stale: string
  /** `{seconds}` stands for the countdown. */
  waiting: string
  /** No connection has been made yet, and the last attempt failed. */
  unreachable: string
  /** The server is in maintenance. */
  maintenance: string
  /** The server has asked the client to return later. */
  overloaded: string
  /** The function for `token` or `headers` failed. */
  signInFailed: string
  /** Follows the four words above while the stream waits. `{seconds}` stands for the countdown. */
  countdown: string
  /** No attempt is planned, as in a hidden tab with `pauseWhenHidden`. */
  paused: string
  closed: string
  /** The server has rejected the credentials. */
  signedOut: string
  /** The user has no right to read this (403). */
  forbidden: string
  /** There is no such stream (404). */
  notFound: string
  /** The stream has been deleted (410). */
  gone: string
  /** Another status that a retry would not change. */
  rejected: string
  /** The answer is not an event stream. */
  wrongType: string
  /** An event is larger than the client takes. */
  tooLarge: string
  /** The server has nothing more to send. */
  ended: string
  retryNow: string
  tryAgain: string
  signIn: string
}

export interface Status {
  /** Shown as `data-status`, for style sheets. */
  readonly kind: Exclude<keyof StatusWords, Button | 'countdown'>
  readonly text: string
  /** The text for a screen reader. */
  readonly spoken: string
  /** The label of the button; `undefined` when there is no button. */
  readonly button: string | undefined
}

type Button = 'retryNow' | 'tryAgain' | 'signIn'
