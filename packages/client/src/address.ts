import { RejoinError } from '@rejoin/protocol'

/** The absolute address of a stream. A page's own base completes a relative one, as for `fetch` and `EventSource`. */
export function resolveAddress(url: string | URL): URL {
  const base = globalThis.document?.baseURI ?? globalThis.location?.href
  const address = URL.canParse(url, base) && new URL(url, base)
  // A name or a password before an @ would make every fetch fail, which looks like a network that never comes back.
  if (address && /^https?:\/\/[^/@]+\//.test(address.href)) return address
  throw invalidOption(`url is ${url}. Give an http(s) URL, no credentials.`)
}

/**
 * The address of one request.
 *
 * @param query - added to it; what the user's URL has already is left alone, as another server may mean something else by it
 * @param cursor - goes here where headers cannot carry it, or do not arrive (§3.1)
 */
export function requestAddress(address: URL, query: Record<string, unknown>, cursor: string | null): URL {
  const url = new URL(address)
  const { searchParams } = url
  // A number becomes text by itself.
  for (const name in query) if (!searchParams.has(name)) searchParams.set(name, query[name] as string)
  if (cursor) searchParams.set('lastEventId', cursor)
  return url
}

/** @param message - with what to give instead */
export function invalidOption(message: string): RejoinError {
  return new RejoinError(message, { code: 'invalid-option' })
}
