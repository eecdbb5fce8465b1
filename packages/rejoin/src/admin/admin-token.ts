import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { RejoinError } from '@rejoin/protocol'

/**
 * Whether a request carries the admin token, as `Authorization: Bearer`. Digests are compared: they have one length for any
 * token, and the time of the comparison does not tell how much of the token was right.
 */
export function adminTokenCheck(token: string): (request: IncomingMessage) => boolean {
  if (token.length < shortestToken) {
    throw new RejoinError(
      `The admin token has ${token.length} characters. Use at least ${shortestToken}: openssl rand -hex 32 makes a good one.`,
      { code: 'invalid-option' },
    )
  }
  const expected = digestOf(token)
  return ({ headers }) => {
    const sent = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1]
    return sent !== undefined && timingSafeEqual(digestOf(sent), expected)
  }
}

const shortestToken = 16

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
