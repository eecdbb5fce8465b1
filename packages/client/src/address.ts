import { invalidOption } from './invalid-option.ts'

/** The absolute address of a stream. A page's own base completes a relative one, as for `fetch` and `EventSource`. */
export function resolveAddress(url: string | URL): URL {
  const base = globalThis.document?.baseURI ?? globalThis.location?.href
  const address = URL.canParse(url, base) && new URL(url, base)
  // A name or a password in it would make every fetch fail, which looks like a network that never comes back.
  if (address && /^https?:/.test(address.href) && !address.username && !address.password) return address
  throw invalidOption(`url is ${url}. Give a whole http(s) URL, without credentials.`)
}

/** The address that carries a cursor where headers cannot, or do not arrive (§3.1). */
export function withCursor(address: URL, cursor: string): URL {
  const carrying = new URL(address)
  carrying.searchParams.set('lastEventId', cursor)
  return carrying
}
