import type { IncomingMessage } from 'node:http'
import type { Grant } from '@rejoin/hub'
import type { Middleware } from '../http/middleware.ts'
import type { Route } from '../http/routes.ts'
import { createApiKeys } from './api-keys.ts'
import { credentialOf } from './credential.ts'
import { digestOf } from './digest.ts'
import { badRule, type Identity, notGood } from './identity.ts'
import { createJwtCheck, expired } from './jwt.ts'
import { guardOrigins } from './origins.ts'
import { createRevocations, type RevokeOptions } from './revocations.ts'
import { checkPatterns } from './rights.ts'
import type { AccessRules } from './rules.ts'
import { ticketRoute } from './ticket-route.ts'
import { createTickets } from './tickets.ts'
import { createVerified } from './verified.ts'

/** Who may do what, carried out. */
export interface Access {
  /**
   * Whose request it is and what they may do: the hub's `authorize`. Null when it presents nothing and that gives no rights;
   * throws or rejects with `unauthorized` when it presents something that is not good. Asked again for a stream that was opened by a
   * ticket, it judges the token that the ticket stood for.
   */
  authorize(request: IncomingMessage): Grant | null | Promise<Grant | null>
  /** Answers preflights, and rejects what a page may not do. Stands before the hub and the routes. */
  readonly middleware: Middleware
  /** `POST /ticket`. */
  readonly ticketRoute: Route
  /** From now on rejects what a subject was given. Called by the hub (`onRevoke`), which ends the open streams. */
  revoke(subject: string, options?: RevokeOptions): void
  close(): void
}

export interface AccessOptions {
  now?: () => number
  /** Tokens are checked by other keys from now on: rights that were given before are to be asked for again. */
  onKeysChanged?: () => void
}

// Node takes 16 KiB of headers altogether. The limit is on what is remembered and decoded.
const maxTokenLength = 8192
const minKeyLength = 32

/** Throws `invalid-option` when a rule is wrong or a key is weak. */
export function createAccess(rules: AccessRules, { now = Date.now, onKeysChanged }: AccessOptions = {}): Access {
  const { jwt = [], keys = [], anonymous, cookie, ticketMs = 30_000 } = rules
  if (cookie !== undefined && !/^[\w!#$%&'*+.^`|~-]+$/.test(cookie)) {
    throw badRule(`${JSON.stringify(cookie)} is no name of a cookie. Use letters, digits and - _`)
  }
  if (!(ticketMs >= 1000 && ticketMs <= 60_000)) {
    throw badRule(`A ticket cannot be good for ${ticketMs} ms. Give 1000 to 60000.`)
  }
  const closing = new AbortController()
  const verified = createVerified(now)
  // By the whole header: known by that, a token need not even be read.
  const verifiedHeaders = createVerified(now)
  const revocations = createRevocations(now)
  const tickets = createTickets(ticketMs, now)
  const keyOwner = createApiKeys(keys)
  const checkJwt = createJwtCheck(jwt, { now, changed: forget, signal: closing.signal })
  const nobody = {
    subject: null,
    subscribe: checkPatterns(anonymous?.subscribe),
    publish: checkPatterns(anonymous?.publish),
  }
  // A stream that is opened by a ticket is asked about again later, when the ticket is long used up.
  const redeemed = new WeakMap<IncomingMessage, string>()

  function forget(): void {
    verified.clear()
    verifiedHeaders.clear()
    onKeysChanged?.()
  }

  /** @param header - the whole one, if the token stands in one */
  async function identify(token: string, header = ''): Promise<Identity> {
    if (token.length > maxTokenLength) throw notGood(`The token is over ${maxTokenLength} characters.`)
    const known = verified.get(token)
    if (known) return stillGood(known)
    const identity = (token.length >= minKeyLength && keyOwner(digestOf(token))) || (await checkJwt(token))
    // Not with any number of spaces before the token, which it may have.
    if (header.length === 'Bearer '.length + token.length) verifiedHeaders.add(header, identity)
    else verified.add(token, identity)
    return stillGood(identity)
  }

  function stillGood(identity: Identity): Identity {
    // Without tolerance: a stream of an expired token would be closed in the moment it opens.
    if (identity.grant.expiresAt !== undefined && identity.grant.expiresAt <= now()) throw notGood(expired)
    if (revocations.has(identity)) throw notGood('These rights were taken back. Get a new token.')
    return identity
  }

  /** The token a request presents, by itself or by a ticket. */
  function tokenOf(request: IncomingMessage): string | undefined {
    const credential = credentialOf(request, cookie)
    if (credential?.from !== 'ticket') return credential?.text
    const token = redeemed.get(request) ?? redeem(request, credential.text)
    redeemed.set(request, token)
    return token
  }

  function redeem({ method }: IncomingMessage, ticket: string): string {
    if (method !== 'GET') throw notGood('A ticket opens streams and polls, nothing else. Send the token itself.')
    const token = tickets.redeem(ticket)
    if (token !== undefined) return token
    throw notGood('The ticket was used already or is too old. Get a new one from POST /ticket.')
  }

  return {
    authorize(request) {
      const { authorization = '' } = request.headers
      const known = verifiedHeaders.get(authorization)
      if (known) return stillGood(known).grant
      const token = tokenOf(request)
      if (token === undefined) return nobody.subscribe.length + nobody.publish.length === 0 ? null : nobody
      return identify(token, authorization).then(({ grant }) => grant)
    },
    middleware: guardOrigins(rules),
    ticketRoute: ticketRoute(issueTicket),
    revoke: (subject, options = {}) => revocations.add(subject, options),
    close: () => closing.abort(),
  }

  async function issueTicket(request: IncomingMessage) {
    const token = tokenOf(request)
    if (token === undefined) throw notGood('A ticket is given for a token. Send "Authorization: Bearer <token>".')
    const { subject, expiresAt = Number.POSITIVE_INFINITY } = (await identify(token)).grant
    return tickets.issue(token, subject, expiresAt)
  }
}
