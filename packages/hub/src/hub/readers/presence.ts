import type { Cancel, Environment } from '../../environment.ts'
import type { Session } from '../read/session.ts'
import { type Grant, maySubscribe } from './grant.ts'

/** The rights of connected readers. Closes streams whose rights expire or are revoked, or whose client has come back. */
export interface Presence {
  add(session: Session, rights: Rights, client?: Client): void
  /** Whether the rights of a session that catches up have to be asked for again. */
  isStale(session: Session): boolean
  /** Asks for the rights again. Closes the session, and returns false, when the rights no longer cover it. */
  renew(session: Session): Promise<boolean>
  remove(session: Session): void
  revoke(subject: string): void
  /** Asks for the rights of all sessions again, spread over so long. */
  renewAll(withinMs: number): void
  /** How often rights have been revoked or all asked for again so far: to be noted before they are asked for, and given to `add` with them. */
  readonly revocations: number
  /** When the rights of a session expire, undefined when they do not. */
  expiresAt(session: Session): number | undefined
}

export interface Rights {
  readonly grant: Grant
  /** Asks for the rights again; left out, they hold until they expire or are revoked. */
  readonly renew?: () => Promise<Grant | null>
  /** `hub.port.revocations` from before they were asked for. A revocation since then holds for them, too. */
  readonly asOf?: number
}

export interface Client {
  readonly id: string
  readonly attempt: number
}

// A revocation is remembered for readers whose rights were asked for before it and who connect after it: a moment's worth.
const maxRevoked = 1000
// A timer is set for at most a day and then set again: a delay of 2^31 ms or more would fire at once.
const lookAgainMs = 24 * 3_600_000
// Rights that shrank are noticed within this time by a reader that catches up.
const renewAfterMs = 5000
const renewTimeoutMs = 10_000

export function createPresence(environment: Environment): Presence {
  const present = new Map<Session, Entry>()
  const bySubject = new Map<string, Set<Session>>()
  /** The latest revocation of a subject. */
  const revoked = new Map<string, number>()
  let revocations = 0
  /** The latest time that all rights were asked for again, counted as `revocations`. */
  let renewals = 0

  function expireAt(session: Session, at: number): void {
    const left = at - environment.now()
    const entry = present.get(session)
    if (!entry) return
    // Also for an expiry that is no number.
    if (!(left > 0)) session.end('token-expired')
    else entry.cancel = environment.after(Math.min(left, lookAgainMs), () => expireAt(session, at))
  }

  /** Only its own older connection, and only by a higher attempt: a late duplicate must not end its successor. */
  function replaceOlder(session: Session, subject: string, client: Client): void {
    for (const other of bySubject.get(subject) ?? []) {
      const older = present.get(other)?.client
      if (other !== session && older?.id === client.id && older.attempt < client.attempt) other.end('replaced')
    }
  }

  async function judgeAgain(session: Session): Promise<boolean> {
    const entry = present.get(session)
    if (!entry?.renew) return true
    entry.judgedAt = environment.now()
    // Rights that cannot be asked for count as gone.
    const grant = await within(renewTimeoutMs, entry.renew(), environment)
    if (!grant || grant.subject !== entry.grant.subject || !maySubscribe(grant, session.subscription)) {
      session.end('token-expired')
      return false
    }
    entry.cancel()
    if (grant.expiresAt !== undefined) expireAt(session, grant.expiresAt)
    return true
  }

  return {
    renew: judgeAgain,
    add(session, { grant, renew, asOf = revocations }, client) {
      const { subject } = grant
      present.set(session, { cancel: () => undefined, grant, renew, client, judgedAt: environment.now() })
      if (subject !== null) {
        bySubject.set(subject, (bySubject.get(subject) ?? new Set()).add(session))
        if (client) replaceOlder(session, subject, client)
        if ((revoked.get(subject) ?? 0) > asOf) session.end('token-expired')
      }
      if (grant.expiresAt !== undefined) expireAt(session, grant.expiresAt)
      // The rules or keys that gave these rights have changed since.
      if (asOf < renewals) void judgeAgain(session)
    },
    isStale(session) {
      const entry = present.get(session)
      // Either way, because the clock may have been set back.
      return entry?.renew !== undefined && Math.abs(environment.now() - entry.judgedAt) >= renewAfterMs
    },
    renewAll(withinMs) {
      revocations += 1
      renewals = revocations
      for (const [session, entry] of present) {
        if (entry.renew) environment.after(environment.random() * withinMs, () => void judgeAgain(session))
      }
    },
    remove(session) {
      const entry = present.get(session)
      if (!entry) return
      entry.cancel()
      present.delete(session)
      const { subject } = entry.grant
      if (subject === null) return
      const others = bySubject.get(subject)
      others?.delete(session)
      if (others?.size === 0) bySubject.delete(subject)
    },
    get revocations() {
      return revocations
    },
    expiresAt: (session) => present.get(session)?.grant.expiresAt,
    revoke(subject) {
      revocations += 1
      revoked.delete(subject)
      revoked.set(subject, revocations)
      for (const oldest of revoked.keys()) {
        if (revoked.size <= maxRevoked) break
        revoked.delete(oldest)
      }
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

/** What `promise` gives, null when it fails or takes longer. */
function within<Value>(ms: number, promise: Promise<Value>, environment: Environment): Promise<Value | null> {
  return new Promise((resolve) => {
    const cancel = environment.after(ms, () => resolve(null))
    void promise.then(resolve, () => resolve(null)).finally(cancel)
  })
}
