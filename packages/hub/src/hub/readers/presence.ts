import type { CloseReason } from '@rejoin/protocol'
import type { Cancel, Environment } from '../../environment.ts'
import type { Subscription } from '../live/subscription.ts'
import { type Client, type Grant, maySubscribe, type Rights } from './grant.ts'

/** What presence needs of a session. */
export interface PresentReader {
  readonly subscription: Subscription
  end(reason: CloseReason): void
}

/** The rights of connected readers. Closes a stream when its rights expire or are revoked, or when its client has returned. */
export interface Presence {
  add(session: PresentReader, rights: Rights, client?: Client): void
  /** Whether `authorize` has to be asked again before the session reads on. */
  isStale(session: PresentReader): boolean
  /** Asks `authorize` again. Closes the session, and returns false, when the rights no longer cover its subscription. */
  renew(session: PresentReader): Promise<boolean>
  remove(session: PresentReader): void
  revoke(subject: string): void
  /** Asks for the rights of all sessions again, spread over this time. */
  renewAll(withinMs: number): void
  /**
   * Counts the calls of `revoke` and `renewAll`. Note it before you ask for rights, and give it to `add` with them: a revocation
   * in between then counts for these rights too.
   */
  readonly revocations: number
  /** When the rights of a session expire; undefined when they do not. */
  expiresAt(session: PresentReader): number | undefined
}

// Revocations are remembered for readers whose rights were asked for before the revocation and who connect after it.
const maxRevoked = 1000
// A timer is set for a day at most, and then set again. A timer of 2^31 ms or more would fire at once.
const lookAgainMs = 24 * 3_600_000
// The rights of a session that catches up are asked for again after this time.
const renewAfterMs = 5000
const renewTimeoutMs = 10_000

export function createPresence(environment: Environment): Presence {
  const present = new Map<PresentReader, Entry>()
  const bySubject = new Map<string, Set<PresentReader>>()
  /** The latest revocation of a subject. */
  const revoked = new Map<string, number>()
  let revocations = 0
  /** `revocations` at the last `renewAll`. */
  let renewals = 0

  function expireAt(session: PresentReader, at: number): void {
    const left = at - environment.now()
    const entry = present.get(session)
    if (!entry) return
    // Written like this, NaN counts as expired.
    if (!(left > 0)) session.end('token-expired')
    else entry.cancel = environment.after(Math.min(left, lookAgainMs), () => expireAt(session, at))
  }

  /** Closes older connections of the same client. Attempts are compared, so that a late duplicate cannot close its successor. */
  function replaceOlder(session: PresentReader, subject: string, client: Client): void {
    for (const other of bySubject.get(subject) ?? []) {
      const older = present.get(other)?.client
      if (other !== session && older?.id === client.id && older.attempt < client.attempt) other.end('replaced')
    }
  }

  async function judgeAgain(session: PresentReader): Promise<boolean> {
    const entry = present.get(session)
    if (!entry?.renew) return true
    entry.judgedAt = environment.now()
    // When `authorize` fails, the rights count as gone.
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
      // The rules or keys have changed since these rights were given.
      if (asOf < renewals) void judgeAgain(session)
    },
    isStale(session) {
      const entry = present.get(session)
      // `abs`, because the clock may have been set back.
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

/** The value of `promise`; null when it rejects or takes longer. */
function within<Value>(ms: number, promise: Promise<Value>, environment: Environment): Promise<Value | null> {
  return new Promise((resolve) => {
    const cancel = environment.after(ms, () => resolve(null))
    void promise.then(resolve, () => resolve(null)).finally(cancel)
  })
}
