import type { ConnectOptions } from '../options.ts'

/**
 * The user whom the options name: by `identity`, else by credentials that can be seen. Two texts are the same user only
 * when they are equal, except that a token which is a JWT stands for its subject: a fresh token of the same user goes on
 * with the same stream.
 *
 * @returns undefined when the options do not show who reads, as with a cookie or a function
 */
export function identityOf({ identity, token, headers }: ConnectOptions): string | undefined {
  if (identity) return JSON.stringify(identity)
  if (typeof token === 'function' || typeof headers === 'function') return
  const texts = [token ?? '', ...headerTexts(headers)].map(subjectOf)
  return texts.some(Boolean) ? JSON.stringify(texts) : undefined
}

/** Whether a component brings no credentials that the page could know of. It then reads with those of the others. */
export function isGuest({ identity, token, headers, fetch }: ConnectOptions): boolean {
  return !identity && !token && !headers && !fetch
}

function headerTexts(headers: Exclude<ConnectOptions['headers'], (...given: never) => unknown>): string[] {
  try {
    return [...new Headers(headers)].flat()
  } catch {
    // No request can be made with these headers, which the stream reports.
    return []
  }
}

function subjectOf(text: string): string {
  const [, payload = ''] = text.split('.')
  try {
    const { iss, sub } = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/')))
    if (sub) return JSON.stringify([iss, sub])
  } catch {
    // Not a JWT.
  }
  return text
}
