import type { IncomingMessage } from 'node:http'
import type { Grant } from '@rejoin/hub'
import { createValues } from '@rejoin/hub/internal'
import type { PutIfAbsent } from '@rejoin/hub/log'
import type { Middleware } from '../http/chain.ts'
import type { Route } from '../http/routes.ts'
import { createForgetfulMap } from '../limits/forgetful-map.ts'
import { createApiKeys, digestOf } from './api-keys.ts'
import { credentialOf } from './credential.ts'
import { badRule, type Identity, notGood } from './identity.ts'
import { createJwtCheck, expired } from './jwt.ts'
import { guardOrigins } from './origins.ts'
import { createRevocations, type RevokeOptions } from './revocations.ts'
import { checkPatterns } from './rights.ts'
import type { AccessRules } from './rules.ts'
import { createTickets, ticketRoute } from './tickets.ts'

/** Enforces the access rules. */
export interface Access {
  /**
   * Says who sent a request and what the sender may do: the hub's `authorize`. Null for a request without credentials when the
   * rules give such requests no rights. Throws or rejects with `unauthorized` for credentials that are not good. For a stream
   * that was opened by a ticket, later calls judge the token behind the ticket.
   */
  authorize(request: IncomingMessage): Grant | null | Promise<Grant | null>
  /** Answers preflights, and rejects requests of pages that may not use the hub. Stands before the hub and the routes. */
  readonly middleware: Middleware
  /** `POST /ticket`. */
  readonly ticketRoute: Route
  /** From now on rejects the tokens and the key of a subject. Called by the hub (`onRevoke`), which ends the open streams. */
  revoke(subject: string, options?: RevokeOptions): void
  /**
   * The time by the clock of the issuer that is ahead of ours the most. Tokens that were issued until now have no later `iat`, so a
   * revocation covers tokens up to this time.
   */
  issuersNow(): number
  close(): void
}

export interface AccessOptions {
  now?: () => number
  /** Called when tokens are checked by other keys from now on. Rights that were given before have to be checked again. */
  onKeysChanged?: () => void
  /**
   * Where the hubs of a log agree on the key of their tickets, and record which tickets were used.
   * @defaultValue the memory of this process
   */
  putIfAbsent?: PutIfAbsent
  /**
   * The clock by which the hubs of a log agree on when a ticket expires.
   * @defaultValue `now`
   */
  logClock?: () => Promise<number>
}

// Bounds the tokens that are remembered and decoded. Node takes 16 KiB for all headers together.
const maxTokenLength = 8192
const minKeyLength = 32

/** Throws `invalid-option` when a rule is wrong or a key is weak. */
export function createAccess(rules: AccessRules, options: AccessOptions = {}): Access {
  const { now = Date.now, onKeysChanged, putIfAbsent = createValues(now), logClock = async () => now() } = options
  const { jwt = [], keys = [], anonymous, cookie, ticketMs = 30_000 } = rules
  if (cookie !== undefined && !/^[\w!#$%&'*+.^`|~-]+$/.test(cookie)) {
    throw badRule(`${JSON.stringify(cookie)} is no name of a cookie. Use letters, digits and - _`)
  }
  if (!(ticketMs >= 1000 && ticketMs <= 60_000)) {
    throw badRule(`A ticket cannot be good for ${ticketMs} ms. Give 1000 to 60000.`)
  }
  const closing = new AbortController()
  const verified = createVerified(now)
  // Keyed by the whole header, so that a known token need not even be cut out of it.
  const verifiedHeaders = createVerified(now)
  const revocations = createRevocations(now)
  const tickets = createTickets({ ticketMs, now, putIfAbsent, logClock })
  const keyOwner = createApiKeys(keys)
  const checkJwt = createJwtCheck(jwt, { now, changed: forget, signal: closing.signal })
  const nobody = {
    subject: null,
    subscribe: checkPatterns(anonymous?.subscribe),
    publish: checkPatterns(anonymous?.publish),
  }
  // The rights of a stream are checked again later, when the ticket that opened it is used up.
  const redeemed = new WeakMap<IncomingMessage, string>()
  /** How far the clock of an issuer was ahead of ours at most, as its tokens show. */
  let issuersAheadMs = 0

  function forget(): void {
    verified.clear()
    verifiedHeaders.clear()
    onKeysChanged?.()
  }

  /** @param header - the whole Authorization header; '' when the token came another way */
  async function identify(token: string, header = ''): Promise<Identity> {
    if (token.length > maxTokenLength) throw notGood(`The token is over ${maxTokenLength} characters.`)
    const known = verified.get(token)
    if (known) return stillGood(known)
    const identity = (token.length >= minKeyLength && keyOwner(digestOf(token))) || (await checkJwt(token))
    issuersAheadMs = Math.max(issuersAheadMs, (identity.issuedAt ?? 0) - now())
    // Only with one space before the token: the header may have any number, and each variant would be an entry.
    if (header.length === 'Bearer '.length + token.length) verifiedHeaders.add(header, identity)
    else verified.add(token, identity)
    return stillGood(identity)
  }

  function stillGood(identity: Identity): Identity {
    // Without tolerance: the stream of an expired token would be closed the moment it opens.
    if (identity.grant.expiresAt !== undefined && identity.grant.expiresAt <= now()) throw notGood(expired)
    if (revocations.has(identity)) throw notGood('These rights were taken back. Get a new token.')
    return identity
  }

  async function redeem(request: IncomingMessage, text: string): Promise<Identity> {
    const before = redeemed.get(request)
    if (before !== undefined) return identify(before)
    if (request.method !== 'GET') throw notGood(onlyReads)
    const ticket = await tickets.open(text)
    // Before the use is recorded: while tokens cannot be checked, the ticket stays good.
    const identity = await identify(ticket.token)
    await ticket.use()
    redeemed.set(request, ticket.token)
    return stillGood(identity)
  }

  return {
    authorize(request) {
      const { authorization = '' } = request.headers
      const known = verifiedHeaders.get(authorization)
      if (known) return stillGood(known).grant
      const credential = credentialOf(request, cookie)
      if (!credential) return nobody.subscribe.length + nobody.publish.length === 0 ? null : nobody
      const { from, text } = credential
      const identity = from === 'ticket' ? redeem(request, text) : identify(text, authorization)
      return identity.then(({ grant }) => grant)
    },
    middleware: guardOrigins(rules),
    ticketRoute: ticketRoute(issueTicket),
    revoke: (subject, options = {}) => revocations.add(subject, options),
    issuersNow: () => now() + issuersAheadMs,
    close: () => closing.abort(),
  }

  async function issueTicket(request: IncomingMessage) {
    const credential = credentialOf(request, cookie)
    if (!credential) throw notGood('A ticket is given for a token. Send "Authorization: Bearer <token>".')
    if (credential.from === 'ticket') throw notGood(onlyReads)
    const { expiresAt = Number.POSITIVE_INFINITY } = (await identify(credential.text)).grant
    return tickets.issue(credential.text, expiresAt)
  }
}

const onlyReads = 'A ticket opens streams and polls, nothing else. Send the token itself.'

/**
 * Tokens and keys that were found good a moment ago. Checking a token costs about as much as publishing an event, and a publisher
 * may send the same token a thousand times a second.
 *
 * Tokens are keys of a map as they are: a digest would cost every publish 2 µs. A map compares only keys with the same hash, and
 * nobody outside knows its hash function, so the time of a lookup tells nothing about the tokens.
 */
export interface Verified {
  get(presented: string): Identity | undefined
  add(presented: string, identity: Identity): void
  clear(): void
}

// An entry is used for at least this long, and at most twice as long.
const goodForMs = 15_000
// At most twice this many are kept: about 25 MB with tokens of 1 KB. With more publishers, some tokens are checked again.
const maxEntries = 10_000

export function createVerified(now: () => number): Verified {
  const identities = createForgetfulMap<Identity>({ forMs: goodForMs, maxEntries })
  return {
    get: (presented) => identities.get(presented, now()),
    add: (presented, identity) => identities.set(presented, identity, now()),
    clear: identities.clear,
  }
}
