import type { CloseReason } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import type { ByteLedger } from '../byte-ledger.ts'
import type { Contact } from '../contact.ts'
import type { Observers } from '../observation.ts'
import type { HubPort } from '../port.ts'
import type { Publishing } from '../publish/publishing.ts'
import type { PollContext } from '../pull/poll.ts'
import { anonymous } from '../pull/poll-readers.ts'
import { mayBeFinished, type OpeningContext } from '../read/opening.ts'
import { createSession } from '../read/reader-session.ts'
import type { SessionContext } from '../read/session.ts'
import type { Admission } from './admission.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { RapidReturns } from './rapid-returns.ts'
import type { RetryPolicy } from './retry.ts'
import type { Sessions } from './sessions.ts'
import type { Admitted, RapidVerdict, ReaderRejection, SubscribeRequest } from './subscribe-request.ts'

/** Lets readers in: judges them by the limits of the hub, counts them, and gives each a session. */
export interface Subscribing
  extends Pick<HubPort, 'admit' | 'subscribe'>,
    Pick<PollContext, 'rejectionOf' | 'rejectAnswer' | 'attach'> {
  nameConnection(): string
}

export interface SubscribingContext {
  readonly environment: Environment
  readonly observers: Observers
  readonly admission: Admission
  readonly returns: RapidReturns
  readonly sessions: Sessions
  readonly heartbeat: Heartbeat
  readonly retry: RetryPolicy
  readonly contact: Contact
  readonly publishing: Pick<Publishing, 'isLocal'>
  readonly opening: OpeningContext
  readonly memory: Pick<ByteLedger, 'streams' | 'unlimited'>
  readonly session: Omit<SessionContext, 'account' | 'onEnd'>
  /** Whether the hub drains or is closed, and rejects all readers. */
  isLeaving(): boolean
}

export function createSubscribing(context: SubscribingContext): Subscribing {
  const { environment, observers, admission, returns, sessions, heartbeat, retry, contact, publishing, opening } =
    context
  const streams: SessionContext = {
    ...context.session,
    account: context.memory.streams,
    onEnd(session, reason) {
      returns.left(session, reason)
      sessions.remove(session)
      heartbeat.remove(session)
      admission.leave(session.reader)
    },
  }
  // Polls count the bytes of their answers themselves, and `poll-readers.ts` counts their readers.
  const polls: SessionContext = { ...streams, account: context.memory.unlimited, onEnd: sessions.remove }

  /** 40 bits, because with 24 bits, two of ten thousand readers would probably have the same name. */
  function nameConnection(): string {
    return `c_${Math.floor(environment.random() * 2 ** 40)
      .toString(16)
      .padStart(10, '0')}`
  }

  /** Tells the observers of a rejection. */
  function reject<Reason extends string>(
    { reader = anonymous, subscription: { selectors } }: SubscribeRequest,
    {
      reason,
      status,
      retryMs = retry.forClose(selectors, reason),
    }: { reason: Reason; status: number; retryMs?: number },
  ): ReaderRejection & { readonly reason: Reason } {
    observers.tell('reject', { ...reader, channels: selectors, reason, status })
    return { reason, retryMs }
  }

  function overLimit(request: SubscribeRequest, status: number): ReaderRejection | undefined {
    const reason = admission.reasonToReject(request.reader ?? anonymous, environment.now())
    return reason && reject(request, { reason, status })
  }

  /** @returns undefined for a reader that is let in, if a little late */
  function tooRapid(
    request: SubscribeRequest,
    status: number,
    verdict: RapidVerdict | undefined,
  ): ReaderRejection | undefined {
    if (!verdict || !('rejectMs' in verdict)) return undefined
    return reject(request, { reason: 'too-rapid', status, retryMs: verdict.rejectMs })
  }

  /** A reader with a cursor is let in while the log is away. It waits for a while, and keeps its cursor if the log stays away. */
  function rejectionByClose(
    request: SubscribeRequest,
    judgeReturn: () => RapidVerdict | undefined,
  ): (ReaderRejection & { reason: CloseReason }) | undefined {
    const { start } = request
    if (context.isLeaving()) return reject(request, { reason: 'drain', status: 200 })
    const isServed = start.from === 'cursor' || (publishing.isLocal && start.from === 'now')
    if (contact.isLost && !isServed) return reject(request, { reason: 'log-unavailable', status: 200 })
    const rejection = overLimit(request, 200) ?? tooRapid(request, 200, judgeReturn())
    return rejection && { ...rejection, reason: 'overloaded' }
  }

  /** A reader that returns after a status need not wait here for the log. */
  function rejectionByStatus(
    request: SubscribeRequest,
    judgeReturn: () => RapidVerdict | undefined,
  ): ReaderRejection | undefined {
    if (context.isLeaving()) return reject(request, { reason: 'drain', status: 503 })
    if (contact.isLost && !publishing.isLocal) return reject(request, { reason: 'log-unavailable', status: 503 })
    return overLimit(request, 503) ?? tooRapid(request, 503, judgeReturn())
  }

  return {
    nameConnection,
    async admit(request, { readsStatus, polls = false }) {
      const { reader = anonymous, subscription, start } = request
      opening.slices.makeWay()
      let rapid: Admitted['rapid']
      const judgeReturn = () => {
        rapid = { verdict: returns.judge(request, returns.nameOf(request)) }
        return rapid.verdict
      }
      const rejection = readsStatus ? rejectionByStatus(request, judgeReturn) : undefined
      if (rejection !== undefined) {
        admission.countAttempt(reader, environment.now())
        return { kind: 'rejected', rejection }
      }
      const { selectors } = subscription
      if (readsStatus || polls) {
        if (!opening.ends.knows(selectors)) await opening.ends.learn(selectors)
        if (opening.ends.areDeleted(selectors)) return { kind: 'deleted' }
      }
      const admitted = { kind: 'admitted' as const, request, ...(rapid && { rapid }) }
      if (start.from === 'cursor' && !opening.ends.knows(selectors)) await opening.ends.learn(selectors)
      if (!mayBeFinished(opening, subscription, start)) return admitted
      try {
        const found = await streams.findOpening(subscription, start, () => false)
        if (found.kind === 'gap') return admitted
        return found.isFinished ? { kind: 'finished' } : { ...admitted, opening: found }
      } catch {
        // The log cannot be read now. The stream of this reader will say so.
        return admitted
      }
    },
    subscribe({ request, rapid, opening }, sink) {
      const { subscription, start, reader = anonymous } = request
      const connection = nameConnection()
      const session = createSession(streams, { connection, subscription, start, reader, opening }, sink)
      // Judged and counted in one step, so that readers that come together cannot all take the last room.
      admission.countAttempt(reader, environment.now())
      const name = returns.nameOf(request)
      let verdict: RapidVerdict | undefined
      const rejection = rejectionByClose(request, () => {
        // Judging it again would count one return twice, and reject honest readers.
        verdict = rapid ? rapid.verdict : returns.judge(request, name)
        return verdict
      })
      admission.enter(reader)
      if (rejection) {
        session.end(rejection.reason, rejection)
        return session
      }
      returns.entered(session, name)
      heartbeat.add(session, request.heartbeat === 'event')
      sessions.begin(session, request, verdict && 'delayMs' in verdict ? verdict.delayMs : 0)
      return session
    },
    rejectionOf(request) {
      admission.countAttempt(request.reader ?? anonymous, environment.now())
      return context.isLeaving() ? reject(request, { reason: 'drain', status: 503 }) : overLimit(request, 503)
    },
    rejectAnswer(request) {
      const { retryMs } = reject(request, { reason: 'memory', status: 503 })
      return { reason: 'overloaded', retryMs }
    },
    attach({ reader = anonymous, ...request }, sink, connection, told) {
      const { subscription, start } = request
      const session = createSession({ ...polls, observers: told }, { connection, reader, subscription, start }, sink)
      if (context.isLeaving()) sessions.close(session, 'drain')
      else sessions.begin(session, request)
      return session
    },
  }
}
