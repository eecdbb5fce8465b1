import { RejoinError } from '@rejoin/protocol'

/** The absolute address of a stream. A page's own base completes a relative one, as for `fetch` and `EventSource`. */
export function resolveAddress(url: string | URL): URL {
  const base = globalThis.document?.baseURI ?? globalThis.location?.href
  const address = URL.canParse(url, base) ? new URL(url, base) : undefined
  if (address && /^https?:$/.test(address.protocol) && !address.username && !address.password) return address
  const advice = address
    ? 'Use http: or https:, and send credentials in the option headers.'
    : 'Outside of a page there is nothing to complete a relative URL with: give the whole of it, with https://.'
  throw new RejoinError(`Cannot connect to ${JSON.stringify(String(url))}. ${advice}`, { code: 'invalid-option' })
}

/** The address that carries a cursor where headers cannot, or do not arrive (§3.1). */
export function withCursor(address: URL, cursor: string): URL {
  const carrying = new URL(address)
  carrying.searchParams.set('lastEventId', cursor)
  return carrying
}
