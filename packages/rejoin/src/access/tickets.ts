import { randomBytes } from 'node:crypto'
import { RejoinError } from '@rejoin/protocol'
import { digestOf } from './digest.ts'

/** Stands in for a token where only an address can be given, as with a browser's EventSource: once, and not for long. */
export interface Tickets {
  issue(token: string, subject: string, notAfter: number): Ticket
  /** The token it stands for. The second time, undefined. */
  redeem(ticket: string): string | undefined
}

export interface Ticket {
  readonly ticket: string
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

// With tokens of 1 KB they hold about 10 MB: 10,000 readers that connect within one ticket's life.
const maxTickets = 10_000
// Tabs of one browser that connect at once. One more, and the oldest unused one is invalid, so nobody can use up the room.
const maxPerSubject = 16

export function createTickets(ticketMs: number, now: () => number): Tickets {
  // In the order in which they expire, as long as the clock is not set.
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
