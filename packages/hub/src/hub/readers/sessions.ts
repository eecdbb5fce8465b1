import { type CloseReason, patternsOver } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import type { Connection } from '../hub.ts'
import type { Subscription } from '../live/subscription.ts'
import type { Session } from '../read/session.ts'
import type { Presence } from './presence.ts'
import type { RetryPolicy } from './retry.ts'
import type { SubscribeRequest } from './subscribe-request.ts'

/** The sessions of all readers that are connected to this hub. */
export interface Sessions {
  readonly size: number
  /** Counts a session, watches the rights of its reader, and starts it after `delayMs`; left out, at once. */
  begin(session: Session, reader: Pick<SubscribeRequest, 'rights' | 'client'>, delayMs?: number): void
  remove(session: Session): void
  get(connection: string): Session | undefined
  /** Readers of a channel, the readers of patterns over it included. */
  readersOf(channel: string): number
  list(): Iterable<Connection>
  /** Closes one stream. Readers that are closed together return spread wide. */
  close(session: Session, reason: CloseReason): void
  /** Closes one connection, or all connections of a subject; returns how many there were. */
  disconnect(who: { connection: string } | { subject: string }): number
  /** Closes all streams, each at a random moment within this time. Resolves when the last one is closed. */
  closeWithin(withinMs: number, reason: CloseReason): Promise<void>
  /** Closes all streams now. */
  closeAll(reason: CloseReason): void
}

export interface SessionsContext {
  readonly environment: Environment
  readonly presence: Presence
  readonly retry: RetryPolicy
}

export function createSessions({ environment, presence, retry }: SessionsContext): Sessions {
  const sessions = new Set<Session>()
  const byConnection = new Map<string, Session>()
  const readership = createReadership()

  function close(session: Session, reason: CloseReason): void {
    session.end(reason, { retryMs: retry.forClose(session.subscription.selectors, reason) })
  }

  function closeAtRandom(session: Session, reason: CloseReason, withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      environment.after(environment.random() * withinMs, () => {
        close(session, reason)
        resolve()
      })
    })
  }

  function sessionsOf(who: { connection: string } | { subject: string }): Session[] {
    if ('subject' in who) return [...sessions].filter(({ reader }) => reader.subject === who.subject)
    const session = byConnection.get(who.connection)
    return session ? [session] : []
  }

  return {
    get size() {
      return sessions.size
    },
    begin(session, { rights, client }, delayMs = 0) {
      sessions.add(session)
      byConnection.set(session.connection, session)
      readership.add(session.subscription)
      if (rights) presence.add(session, rights, client)
      if (delayMs > 0) environment.after(delayMs, () => session.start())
      else session.start()
    },
    remove(session) {
      if (sessions.delete(session)) readership.remove(session.subscription)
      if (byConnection.get(session.connection) === session) byConnection.delete(session.connection)
      presence.remove(session)
    },
    get: (connection) => byConnection.get(connection),
    readersOf: readership.of,
    *list() {
      for (const { connection, reader, subscription, mode, full, pending, since } of sessions) {
        if (mode === 'ended') continue
        // Field by field: `...reader` takes eighty times as long, and there may be ten thousand sessions.
        const { ip, userAgent, subject } = reader
        yield { ip, userAgent, subject, connection, channels: subscription.selectors, mode, full, pending, since }
      }
    },
    close,
    disconnect(who) {
      const found = sessionsOf(who)
      for (const session of found) close(session, 'admin')
      return found.length
    },
    async closeWithin(withinMs, reason) {
      await Promise.all([...sessions].map((session) => closeAtRandom(session, reason, withinMs)))
    },
    closeAll(reason) {
      for (const session of sessions) session.end(reason)
    },
  }
}

/** Counts the readers of each channel and pattern. */
interface Readership {
  add(subscription: Subscription): void
  remove(subscription: Subscription): void
  /** Readers of a channel, the readers of patterns over it included. */
  of(channel: string): number
}

function createReadership(): Readership {
  const counts = new Map<string, number>()

  function change(selector: string, by: number): void {
    const count = (counts.get(selector) ?? 0) + by
    if (count === 0) counts.delete(selector)
    else counts.set(selector, count)
  }

  return {
    add({ selectors }) {
      for (const selector of selectors) change(selector, 1)
    },
    remove({ selectors }) {
      for (const selector of selectors) change(selector, -1)
    },
    of(channel) {
      let readers = counts.get(channel) ?? 0
      for (const pattern of patternsOver(channel)) readers += counts.get(pattern) ?? 0
      return readers
    },
  }
}
