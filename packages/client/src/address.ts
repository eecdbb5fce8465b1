import { RejoinError } from '@rejoin/protocol'

/** The absolute address of a stream. In a page, a relative URL is resolved as `fetch` and `EventSource` do it. */
export function resolveAddress(url: string | URL): URL {
  const base = globalThis.document?.baseURI ?? globalThis.location?.href
  const address = URL.canParse(url, base) && new URL(url, base)
  // With a name or a password before an @, every `fetch` fails, which would look like a network that never comes back.
  if (address && /^https?:\/\/[^/@]+\//.test(address.href)) return address
  throw invalidOption(`url is ${url}. Give an http(s) URL, no credentials.`)
}

/**
 * The address of one request.
 *
 * @param query - parameters to add. A parameter that the user's URL already has is kept: another server may use it
 * differently.
 * @param cursor - added to the query, for when a header cannot carry the cursor or does not arrive (§3.1)
 */
export function requestAddress(address: URL, query: Record<string, unknown>, cursor: string | null): URL {
  const url = new URL(address)
  const { searchParams } = url
  // `set` turns a number into text.
  for (const name in query) if (!searchParams.has(name)) searchParams.set(name, query[name] as string)
  if (cursor) searchParams.set('lastEventId', cursor)
  return url
}

/** @param message - what is wrong, and what to give instead */
export function invalidOption(message: string): RejoinError {
  return new RejoinError(message, { code: 'invalid-option' })
}
