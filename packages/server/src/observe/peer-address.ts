import type { IncomingMessage } from 'node:http'

/** Whose request it is: as the proxy says, if there is one that may be believed, else the address of the connection. */
export function peerAddress(request: IncomingMessage, trustProxy: boolean): string | null {
  const forwarded = trustProxy ? request.headers['x-forwarded-for'] : undefined
  // The last address is the one that our own proxy has added; those before it are what it was told.
  const last = String(forwarded ?? '')
    .split(',')
    .at(-1)
    ?.trim()
  return last || (request.socket?.remoteAddress ?? null)
}
