import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { discardBody } from '@rejoin/hub/internal'
import type { PutIfAbsent } from '@rejoin/hub/log'
import type { Route } from '../http/routes.ts'
import { notGood } from './identity.ts'

/**
 * Tickets replace a token where only a URL can be given, as in a browser's EventSource. Each works once, for a short time, on
 * every hub of the log. A ticket is the token itself, sealed with a key that the hubs keep in their log. So nothing has to be
 * stored until a ticket is used, and the hub that gets the ticket judges the token by its own rules and revocations.
 */
export interface Tickets {
  issue(token: string, notAfter: number): Promise<Ticket>
  /** Rejects with `unauthorized` for a ticket that has expired or that no hub of this log has issued. */
  open(ticket: string): Promise<OpenedTicket>
}

export interface Ticket {
  readonly ticket: string
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

export interface OpenedTicket {
  readonly token: string
  /** Records the use where all hubs see it. Rejects with `unauthorized` when the ticket was used before, here or elsewhere. */
  use(): Promise<void>
}

export interface TicketsContext {
  readonly ticketMs: number
  readonly now: () => number
  readonly putIfAbsent: PutIfAbsent
  /** The one clock of all hubs of the log: their own may differ by more than a ticket is good for. */
  readonly logClock: () => Promise<number>
}

const keyName = 'ticket-key'
// A use is recorded for longer than the ticket is good here: another hub may have asked for the time of the log a while ago.
const clockSkewMs = 10_000
// Requests with invented tickets must not become as many calls to the log.
const askAgainAfterMs = 1000

export function createTickets({ ticketMs, now, putIfAbsent, logClock }: TicketsContext): Tickets {
  let key: Buffer | undefined
  let askedAt = Number.NEGATIVE_INFINITY
  let logAheadMs = 0
  let comparedAt = Number.NEGATIVE_INFINITY

  /** By how much the clock of the log is ahead of ours. */
  async function aheadOfOurs(): Promise<number> {
    const since = now() - comparedAt
    if (since >= 0 && since < askAgainAfterMs) return logAheadMs
    try {
      const time = await logClock()
      comparedAt = now()
      logAheadMs = time - comparedAt
    } catch {
      // The log is unavailable. Its clock is not another one since we asked.
    }
    return logAheadMs
  }

  /**
   * The key that stands in the log. A log that was emptied gets the key back that this hub knows, so tickets stay good. When
   * another hub was faster, its key counts from now on.
   */
  async function standingKey(): Promise<Buffer> {
    askedAt = now()
    const own = key ?? randomBytes(keyBytes)
    key = Buffer.from(await putIfAbsent(keyName, own.toString('base64url')), 'base64url')
    return key
  }

  async function keyToIssue(): Promise<Buffer> {
    try {
      return await standingKey()
    } catch (error) {
      // The log is unavailable. The ticket is good when it is back.
      if (key) return key
      throw error
    }
  }

  async function contentOf(ticket: string) {
    const content = key && unseal(key, ticket)
    if (content || (key && now() - askedAt < askAgainAfterMs)) return content
    return unseal(await standingKey(), ticket)
  }

  return {
    async issue(token, notAfter) {
      const aheadMs = await aheadOfOurs()
      const expiresAt = Math.floor(Math.min(now() + ticketMs, notAfter))
      return { ticket: seal(await keyToIssue(), Math.max(0, expiresAt + aheadMs), token), expiresAt }
    },
    async open(ticket) {
      const content = await contentOf(ticket)
      if (!content) {
        throw notGood('The ticket is not from a hub of this log, or is not complete. Get a new one from POST /ticket.')
      }
      const { name, text: token } = content
      const expiresAt = content.expiresAt - (await aheadOfOurs())
      if (expiresAt <= now())
        throw notGood('The ticket has expired. Get a new one from POST /ticket and use it at once.')
      return {
        token,
        async use() {
          const mark = randomBytes(12).toString('base64url')
          const standing = await putIfAbsent(`ticket:${name}`, mark, expiresAt - now() + clockSkewMs)
          if (standing === mark) return
          throw notGood(
            'The ticket was used already: each opens one stream or poll. Get a new one from POST /ticket for each connection.',
          )
        },
      }
    },
  }
}

/** `POST /ticket`. It needs no body, and discards one that is sent. */
export function ticketRoute(issue: (request: IncomingMessage) => Promise<Ticket>): Route {
  return {
    method: 'POST',
    path: '/ticket',
    open: 'to-all',
    async handle({ request }) {
      discardBody(request)
      return { status: 201, body: await issue(request) }
    },
  }
}

/** The length of a key for `seal`, in bytes. */
export const keyBytes = 32

/** What a sealed text holds. */
export interface Content {
  /** A name that no other sealed text has, whatever spelling of the sealed text it was read from. */
  readonly name: string
  /** Milliseconds since 1970. */
  readonly expiresAt: number
  readonly text: string
}

/**
 * Encrypts and signs a text for addresses (AES-256-GCM, base64url). Only a holder of the key can read it, change it or make one.
 */
export function seal(key: Buffer, expiresAt: number, text: string): string {
  const salt = randomBytes(saltBytes)
  const cipher = createCipheriv(algorithm, keyFor(key, salt), noIv)
  const expiry = Buffer.allocUnsafe(expiryBytes)
  expiry.writeUIntBE(expiresAt, 0, expiryBytes)
  const body = [cipher.update(expiry), cipher.update(text, 'utf8'), cipher.final()]
  return Buffer.concat([salt, ...body, cipher.getAuthTag()]).toString('base64url')
}

/** Undefined for a text that was sealed with another key, or changed. */
export function unseal(key: Buffer, sealed: string): Content | undefined {
  const bytes = Buffer.from(sealed, 'base64url')
  if (bytes.length < saltBytes + expiryBytes + tagBytes) return undefined
  const salt = bytes.subarray(0, saltBytes)
  const decipher = createDecipheriv(algorithm, keyFor(key, salt), noIv, { authTagLength: tagBytes })
  decipher.setAuthTag(bytes.subarray(-tagBytes))
  try {
    const body = Buffer.concat([decipher.update(bytes.subarray(saltBytes, -tagBytes)), decipher.final()])
    const text = body.toString('utf8', expiryBytes)
    return { name: salt.toString('base64url'), expiresAt: body.readUIntBE(0, expiryBytes), text }
  } catch {
    // `final` throws when the signature does not fit. There is no other way to ask.
    return undefined
  }
}

const algorithm = 'aes-256-gcm'
const saltBytes = 16
const expiryBytes = 6
const tagBytes = 16
// Each text has a key of its own, so the same start value is never used twice with one key. A random start value of 96 bits under
// one key for all texts would be worn out after 2^32 of them (NIST SP 800-38D, section 8.3).
const noIv = Buffer.alloc(12)

function keyFor(key: Buffer, salt: Buffer): Buffer {
  return createHmac('sha256', key).update(salt).digest()
}
