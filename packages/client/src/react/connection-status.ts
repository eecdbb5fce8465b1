import { createElement, type ReactNode } from 'react'
import type { Source } from '../bindings/shared-streams.ts'
import { pressButton, type StatusWords, statusOf } from '../bindings/status.ts'
import { useConnection } from './hooks.ts'

export interface ConnectionStatusProps {
  /** The URL of the stream, as other components give it, or the stream itself. */
  source: Source
  /**
   * Called when the user presses "Sign in" after the server has rejected the credentials. When its promise has settled,
   * the stream goes on at its cursor.
   * @defaultValue none: the button asks `token` once more, which may itself be a login
   */
  onSignIn?: (() => unknown) | undefined
  /**
   * Words that replace the English ones.
   * @defaultValue none
   */
  words?: Partial<StatusWords> | undefined
}

/** Shows the connection of a stream. Import `@rejoin/client/status.css` once, or style its classes yourself. */
export function ConnectionStatus({ source, onSignIn, words }: ConnectionStatusProps): ReactNode {
  const connection = useConnection(source)
  const status = statusOf(connection, words)
  if (!status) return null
  const { kind, text, spoken, button } = status
  const named = kind === 'live' ? { role: 'img', 'aria-label': text } : {}
  return createElement(
    'span',
    { className: 'rejoin-status', 'data-status': kind },
    createElement('span', { className: 'rejoin-status-dot', ...named }),
    createElement('span', { className: 'rejoin-status-text', 'aria-hidden': true }, text),
    createElement('span', { className: 'rejoin-status-spoken', role: 'status' }, spoken),
    button && createElement('button', { type: 'button', onClick: () => pressButton(connection, onSignIn) }, button),
  )
}
