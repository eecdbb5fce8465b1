import type { Cancel, Environment } from '../environment.ts'
import { type Grant, maySubscribe } from './grant.ts'
import type { Session } from './session.ts'

/** Who is here under whose rights: ends streams whose rights expire, are revoked, or that their owner has replaced. */
export interface Presence {
  add(session: Session, rights: Rights, client?: Client): void
  /** Before a session reads on from the log: whether its rights still hold. Ends it when they do not. */
  stillAllowed(session: Session): Promise<boolean>
  remove(session: Session): void
  revoke(subject: string): void
}

export interface Rights {
  readonly grant: Grant
  /** Asks for the rights again; left out, they hold until they expire or are revoked. */
  readonly renew?: () => Promise<Grant | null>
}

export interface Client {
  readonly id: string
  readonly attempt: number
}

// Timers are set for at most this long and then looked at again: a delay of 2^31 ms or more would fire at once.
const longestTimerMs = 24 * 3_600_000
// Rights that shrank are noticed within this time by a reader that catches up.
const renewAfterMs = 5000

export function createPresence(environment: Environment): Presence {
  const present = new Map<Session, Entry>()
  const bySubject = new Map<string, Set<Session>>()

  function expireAt(session: Session, at: number): void {
    const left = at - environment.now()
    const entry = present.get(session)
    if (!entry) return
    if (left <= 0) session.end('token-expired')
    else entry.cancel = environment.after(Math.min(left, longestTimerMs), () => expireAt(session, at))
  }

  /** Only its own older connection, and only by a higher attempt: a late duplicate must not end its successor. */
  function replaceOlder(session: Session, { subject }: Grant, client: Client): void {
    for (const other of bySubject.get(subject) ?? []) {
      const older = present.get(other)?.client
      if (other !== session && older?.id === client.id && older.attempt < client.attempt) other.end('replaced')
    }
  }

  return {
    add(session, { grant, renew }, client) {
      present.set(session, { cancel: () => undefined, grant, renew, client, judgedAt: environment.now() })
      bySubject.set(grant.subject, (bySubject.get(grant.subject) ?? new Set()).add(session))
      if (client) replaceOlder(session, grant, client)
      if (grant.expiresAt !== undefined) expireAt(session, grant.expiresAt)
    },
    async stillAllowed(session) {
      const entry = present.get(session)
      if (!entry?.renew || environment.now() - entry.judgedAt < renewAfterMs) return true
      entry.judgedAt = environment.now()
      const grant = await entry.renew()
      if (grant && grant.subject === entry.grant.subject && maySubscribe(grant, session.subscription)) return true
      session.end('token-expired')
      return false
    },
    remove(session) {
      const entry = present.get(session)
      if (!entry) return
      entry.cancel()
      present.delete(session)
      const others = bySubject.get(entry.grant.subject)
      others?.delete(session)
      if (others?.size === 0) bySubject.delete(entry.grant.subject)
    },
    revoke(subject) {
      for (const session of [...(bySubject.get(subject) ?? [])]) session.end('token-expired')
    },
  }
}

interface Entry {
  readonly grant: Grant
  readonly renew: Rights['renew'] | undefined
  readonly client: Client | undefined
  cancel: Cancel
  judgedAt: number
}
