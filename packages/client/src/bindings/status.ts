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
  const text = words[kind].replace('{seconds}', `${connection.retryInSeconds}`)
  // A screen reader would read a countdown aloud every second.
  const spoken = kind === 'waiting' ? words.reconnecting : text
  const button = buttons[kind]
  return { kind, text, spoken, button: button && words[button] }
}

/** Carries out the button. When credentials are missing, a login comes first. The stream goes on at its cursor. */
export async function pressButton({ closeReason, reconnect }: ConnectionView, signIn?: () => unknown): Promise<void> {
  if (closeReason === 'unauthorized') await signIn?.()
  reconnect()
}

function kindOf({ state, attempt, stale, closeReason, nextRetryAt }: ConnectionView): Status['kind'] | null {
  if (state === 'connecting') return attempt ? 'reconnecting' : state
  if (state === 'connected') return stale ? 'stale' : 'live'
  if (state === 'backoff') return nextRetryAt ? 'waiting' : 'paused'
  if (closeReason === 'finished') return 'ended'
  if (closeReason === 'unauthorized') return 'signedOut'
  return closeReason && closeReason !== state ? state : null
}

const english: StatusWords = {
  connecting: 'Connecting…',
  reconnecting: 'Reconnecting…',
  live: 'Live',
  stale: 'May be out of date',
  waiting: 'Reconnecting in {seconds} s…',
  paused: 'Paused',
  closed: 'Connection lost',
  signedOut: 'Signed out',
  ended: 'Ended',
  retryNow: 'Retry now',
  tryAgain: 'Try again',
  signIn: 'Sign in',
}

const buttons: Partial<Record<string, keyof StatusWords>> = {
  waiting: 'retryNow',
  paused: 'retryNow',
  closed: 'tryAgain',
  signedOut: 'signIn',
}

/** The words that are shown and spoken. Replace them for another language or another tone. */
export interface StatusWords {
  connecting: string
  /** Also spoken instead of a countdown. */
  reconnecting: string
  live: string
  /** A heartbeat is overdue. */
  stale: string
  /** `{seconds}` stands for the countdown. */
  waiting: string
  /** No attempt is planned, as in a hidden tab with `pauseWhenHidden`. */
  paused: string
  closed: string
  /** The server has rejected the credentials. */
  signedOut: string
  /** The server has nothing more to send. */
  ended: string
  retryNow: string
  tryAgain: string
  signIn: string
}

export interface Status {
  /** Shown as `data-status`, for style sheets. */
  readonly kind: Exclude<keyof StatusWords, 'retryNow' | 'tryAgain' | 'signIn'>
  readonly text: string
  /** The text for a screen reader. */
  readonly spoken: string
  /** The label of the button; `undefined` when there is no button. */
  readonly button: string | undefined
}
