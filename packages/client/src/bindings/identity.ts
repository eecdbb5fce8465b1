import type { ConnectOptions } from '../options.ts'

/**
 * The user whom the options name: by `identity`, else by credentials that can be seen. Two texts are the same user only
 * when they are equal, except that a token which is a JWT stands for its subject: a fresh token of the same user goes on
 * with the same stream.
 *
 * @returns undefined when the options do not show who reads, as with a cookie or a function
 */
export function identityOf(options: ConnectOptions): string | undefined {
  const { identity } = options
  const texts = identity ? [identity] : [...visible(options)].flat()
  return texts.length ? JSON.stringify(texts.map((text) => subjectOf(text) ?? text)) : undefined
}

/**
 * How far the options can be trusted to be those of one user.
 *
 * @returns 0 when there are no credentials that the page could know of; 1 when others may give the same options, because
 * a cookie or a function tells them apart; 2 when nobody else gives these options
 */
export function trustIn(options: ConnectOptions): 0 | 1 | 2 {
  const { identity, token, headers, fetch } = options
  const given = [token, headers, fetch]
  if (identity || (!given.some(isFunction) && visible(options).has('authorization'))) return 2
  return given.some(Boolean) ? 1 : 0
}

/** The subject of a token that is a JWT. */
export function subjectIn(options: ConnectOptions): string | undefined {
  return subjectOf(visible(options).get('authorization'))
}

/** The headers that can be seen. */
function visible({ token, headers }: ConnectOptions): Headers {
  try {
    const seen = new Headers(isFunction(headers) ? undefined : headers)
    if (token && !isFunction(token)) seen.set('authorization', token)
    return seen
  } catch {
    // No request can be made with these headers, which the stream reports.
    return new Headers()
  }
}

function isFunction(given: unknown): given is (...args: never) => unknown {
  return typeof given === 'function'
}

function subjectOf(text: string | null): string | undefined {
  try {
    const { iss, sub } = JSON.parse(atob(text!.split('.')[1]!.replaceAll('-', '+').replaceAll('_', '/')))
    if (sub) return JSON.stringify([iss, sub])
  } catch {
    // Not a JWT.
  }
}
