import type { IncomingMessage } from 'node:http'
import { targetOf } from '@rejoin/hub/internal'
import { notGood } from './identity.ts'

/** The credential by which a request shows who sent it. */
export interface Credential {
  readonly from: 'authorization' | 'ticket' | 'cookie'
  readonly text: string
}

/**
 * The first of: the header, the ticket, the cookie; undefined without any of them. Throws for a credential in an unreadable form:
 * such a request is not anonymous.
 */
export function credentialOf(request: IncomingMessage, cookie: string | undefined): Credential | undefined {
  const { authorization } = request.headers
  if (authorization !== undefined) return { from: 'authorization', text: bearerToken(authorization) }
  const ticket = ticketOf(request)
  if (ticket !== undefined) return { from: 'ticket', text: ticket }
  const value = cookie === undefined ? undefined : cookieOf(request.headers.cookie, cookie)
  return value === undefined ? undefined : { from: 'cookie', text: value }
}

function bearerToken(header: string): string {
  // The form of RFC 6750 §2.1.
  const token = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(header)?.[1]
  if (token !== undefined) return token
  throw notGood('The Authorization header holds no token. Send "Authorization: Bearer <token>".')
}

function ticketOf(request: IncomingMessage): string | undefined {
  // Almost no request has a ticket, and parsing a query is costly.
  const target = targetOf(request)
  if (!target.mayHave('ticket')) return undefined
  const [ticket, another] = target.query.getAll('ticket')
  if (another === undefined) return ticket
  throw notGood('There are two tickets. Send the one that was given last.')
}

function cookieOf(header: string | undefined, name: string): string | undefined {
  let found: string | undefined
  for (const part of header?.split(';') ?? []) {
    const mark = part.indexOf('=')
    if (mark < 0 || part.slice(0, mark).trim() !== name) continue
    const value = part.slice(mark + 1).trim()
    // A sibling domain can set a cookie of the same name, and the browser decides which comes first.
    if (found !== undefined && found !== value) throw notGood(`There are two cookies of the name ${name}. Remove one.`)
    found = value
  }
  // A logout often sets an empty cookie. It presents nothing.
  return found === '' ? undefined : found
}
