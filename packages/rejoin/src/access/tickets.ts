import { randomBytes } from 'node:crypto'
import type { PutIfAbsent } from '@rejoin/hub/log'
import { notGood } from './identity.ts'
import { keyBytes, seal, unseal } from './sealed.ts'

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
