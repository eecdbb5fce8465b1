import { randomBytes } from 'node:crypto'
import { RejoinError } from '@rejoin/protocol'
import { digestOf } from './digest.ts'

/** Tickets replace a token where only a URL can be given, as in a browser's EventSource. Each works once, for a short time. */
export interface Tickets {
  issue(token: string, subject: string, notAfter: number): Ticket
  /** The token behind the ticket; undefined for a used, expired or unknown ticket. */
  redeem(ticket: string): string | undefined
}

export interface Ticket {
  readonly ticket: string
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

// 10,000 readers that connect within the life of one ticket. With tokens of 1 KB this is about 10 MB.
const maxTickets = 10_000
// For the tabs of one browser that connect at once. One ticket more invalidates the subject's oldest, so nobody can use up all.
const maxPerSubject = 16

export function createTickets(ticketMs: number, now: () => number): Tickets {
  // In the order in which the tickets expire, unless the clock is changed.
  const issued = new Map<string, Issued>()
  const bySubject = new Map<string, Set<string>>()

  function remove(key: string): Issued | undefined {
    const entry = issued.get(key)
    if (!entry) return undefined
    issued.delete(key)
    const others = bySubject.get(entry.subject)
    others?.delete(key)
    if (others?.size === 0) bySubject.delete(entry.subject)
    return entry
  }

  function makeRoom(subject: string): void {
    for (const [key, { unusedUntil }] of issued) {
      if (unusedUntil > now()) break
      remove(key)
    }
    const own = bySubject.get(subject)
    const [oldest] = own ?? []
    if (own && oldest !== undefined && own.size >= maxPerSubject) remove(oldest)
    if (issued.size < maxTickets) return
    throw new RejoinError('Too many tickets are waiting to be used. Try again in a while.', {
      code: 'overloaded',
      retryable: true,
    })
  }

  return {
    issue(token, subject, notAfter) {
      makeRoom(subject)
      const ticket = randomBytes(24).toString('base64url')
      const key = digestOf(ticket)
      const unusedUntil = now() + ticketMs
      const expiresAt = Math.min(unusedUntil, notAfter)
      issued.set(key, { token, subject, unusedUntil, expiresAt })
      bySubject.set(subject, (bySubject.get(subject) ?? new Set()).add(key))
      return { ticket, expiresAt }
    },
    redeem(ticket) {
      const entry = remove(digestOf(ticket))
      return entry && entry.expiresAt > now() ? entry.token : undefined
    },
  }
}

interface Issued extends Pick<Ticket, 'expiresAt'> {
  readonly token: string
  readonly subject: string
  readonly unusedUntil: number
}
