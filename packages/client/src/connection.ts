import type { Hello } from '@rejoin/protocol'
import { type Formula, retryDelay } from './backoff.ts'
import {
  droppedMs,
  faultLimit,
  goodAfterMs,
  maxAskedMs,
  maxOpenMs,
  never,
  renewalShare,
  secondLookMs,
  slackMs,
  syncBurstMs,
  syncEveryMs,
  upgradeMs,
} from './connection-limits.ts'
import type { CloseReason, StreamState } from './stream-state.ts'

/**
 * The life of a stream across its connections, as a pure function: what happened goes in, the next state and what to do
 * about it come out. It holds no timer, no clock and no socket, so a test can walk it through years in a millisecond.
 *
 * At most one connection is open at any time. Each has a generation, and what a transport reports about any but the
 * current one is ignored: an aborted request may still deliver a chunk, an error or a refusal.
 *
 * @param generation - of the connection that a report is about; none for what is not about one
 */
export function step(connection: Connection, input: Input, moment: Moment, generation?: number): Step {
  // A timer that has fired is gone, also when it is to be set for the same time again.
  const before = input.type === 'timer' ? { ...connection, timerAt: never } : connection
  // One copy per step, changed in place until it is handed out.
  const next: Draft = { ...before }
  const isCurrent = generation === before.generation
  if (before.state === 'closed') {
    // A handler closed the stream. It did get this event, so whoever stores the cursor now must find it counted.
    // So it must where the user has dealt with a gap, which is about no connection.
    if ('id' in input && (isCurrent ? input.type === 'event' : generation === undefined)) moveCursor(next, input.id)
    // Only its owner closes a stream for good. What a server refused, it may grant now, and failures start from 0.
    else if (input.type === 'connect' && before.closeReason !== 'closed') {
      next.attempt = 0
      open(next, moment)
    }
  } else if (generation === undefined || (isCurrent && isOpen(before))) {
    const isLate = input.type === 'timer' && isOpen(before) && moment.now - connection.timerAt > 2 * moment.tickMs
    ;(reactions[isLate ? 'thaw' : input.type] as Reaction<Input>)(next, moment, input)
  }
  next.timerAt = Math.min(
    deadlineOf(next),
    isOpen(next) ? moment.now + moment.tickMs : never,
    // One that is early is left alone: when it fires, it is set again. So a stream full of events sets none.
    next.state === before.state ? next.timerAt : never,
  )
  return { connection: next, effects: effectsOf(before, next) }
}

/** Where a stream stands before its first `connect`, which sets the rest. It may have to wait for its cursor. */
export function newConnection(cursor: string | null, clientId: string): Connection {
  return {
    clientId,
    state: 'connecting',
    generation: 0,
    attempt: 0,
    cursor,
    inQuery: false,
    tier: 0,
    faults: 0,
    upgradeAt: never,
    openMs: 30_000,
    stale: false,
    syncAt: 0,
    retryMs: 0,
    nextRetryAt: null,
    notBefore: 0,
    lastEventAt: null,
    closeReason: null,
    closeMessage: null,
    timerAt: never,
  } satisfies Partial<Connection> as Connection
}

const reactions: { readonly [Type in Input['type']]: Reaction<Extract<Input, { type: Type }>> } = {
  connect: open,
  timer: due,
  wake,
  // Chromium 156: a body that got bytes while its page was frozen is never read to again, and never fails.
  // What has yet to be sent needs no other.
  thaw: (next, moment) => isOpen(next) && !next.asking && open(next, moment),
  hide: (next) => rest(next, null),
  close: (next) => close(next, 'closed'),
  answered,
  unusable: skip,
  bytes: live,
  retry(next, _, { ms }) {
    next.retryMs = ms
  },
  hello: greeted,
  event(next, moment, { id }) {
    // On a hub `hello` comes first and announces the heartbeat. A server that starts with an event announces none, so
    // its silence proves nothing.
    if (!next.proved) next.silenceMs = next.openMs = never
    next.lastEventAt = moment.now
    prove(next, moment)
    moveCursor(next, id)
  },
  id: (next, _, { id }) => moveCursor(next, id),
  sync: resync,
  asking(next, { now }, { asking }) {
    next.asking = asking
    // The clock starts when the request is sent.
    next.lastByteAt = now
    if (!next.proved) next.openedAt = now
  },
  renewed: open,
  paused(next, { now }, { paused }) {
    next.paused = paused
    next.lastByteAt = now
  },
  ended,
}

type Reaction<Given extends Input> = (next: Draft, moment: Moment, input: Given) => void

function answered(
  next: Draft,
  moment: Moment,
  { status, isStream, retryAfterMs, isElsewhere, closeMessage }: Answer,
): void {
  next.closeMessage = closeMessage || null
  if (status === 200 && isStream) {
    next.answered = true
    next.openedAt = next.lastByteAt = moment.now
    next.refresh = false
    // A proxy may hold back what follows the head. Only of a server that is no hub, nothing is to be expected.
    if (next.openMs === never) next.state = 'connected'
  } else if (status >= 500 || [408, 425, 429].includes(status) || (status === 200 && next.known)) {
    // What had a stream and now has another page is a login of the network (captive portal), or a server half restarted.
    lose(next, moment, retryAfterMs)
    next.faults = 0
    // Who says when to come back has turned us away on purpose (§4.12).
    if (retryAfterMs) next.closeReason ??= 'overloaded'
  } else if (status === 401 && moment.canRefresh && !next.refresh) {
    next.refresh = true
    open(next, moment)
  } else if (isElsewhere && next.tier && status !== 204 && status !== 401) {
    // Not every server can be polled, and a stream does not end because one cannot. But it is no hub, as above.
    next.openMs = never
    skip(next, moment)
  } else {
    close(next, finalAnswers[status] ?? `http-${status}`)
  }
}

function skip(next: Draft, moment: Moment): void {
  countFault(next, never, moment)
  if (moment.tiers > 1) lose(next, moment)
  else close(next, 'no-transport')
}

function greeted(next: Draft, moment: Moment, { id, hello }: Greeting): void {
  const { requested, heartbeatMs = 0, expiresInMs = 0 } = hello
  next.silenceMs = never
  next.isHub = true
  if (heartbeatMs > 0) {
    // Two heartbeats may be late, not lost; five seconds are for a slow network.
    next.silenceMs = 2 * heartbeatMs + slackMs
    next.openMs = Math.min(next.silenceMs, maxOpenMs)
  }
  if (expiresInMs > 0 && moment.canRefresh) {
    next.renewAt = moment.now + Math.max(renewalShare * expiresInMs, goodAfterMs)
  }
  prove(next, moment)
  if (next.isLost) {
    // A cursor that no hub knows has this one tell what may be gone (§4.6). Another server would take it for an id of its own.
    moveCursor(next, 'lost')
    open(next, moment)
  } else if (next.sent === null || requested === next.sent) {
    moveCursor(next, id)
  } else if (requested !== undefined) {
    // Something between us and the hub took the cursor away, or answered with another reader's stream. This one starts
    // at a position of its own, and taking its id would pass over what we have not seen (§4.4).
    next.astray = next.inQuery
    next.inQuery = true
    if (!next.astray) open(next, moment)
  }
}

function ended(next: Draft, moment: Moment, { reason, against }: Ending): void {
  if (next.proved) live(next, moment)
  if (reason === 'finished' || reason === 'too-large') {
    // The next one would meet the same end.
    close(next, reason)
    return
  }
  // Whose silence proves nothing is no hub, and may send what it has and end for good reason.
  const isDropped = next.answered && moment.now - next.openedAt < droppedMs && next.silenceMs < never
  // Only a hub gives reasons.
  if (reason) next.isHub = true
  if (!reason && isDropped) countFault(next, 1, moment)
  else if (against) countFault(next, against, moment)
  // A server that cannot be reached, or ends a stream that did get through, explains those before.
  else next.faults = 0
  next.refresh ||= reason === 'token-expired'
  lose(next, moment)
  next.closeReason ??= reason ?? null
}

function prove(next: Draft, moment: Moment): void {
  next.proved = next.known = true
  live(next, moment)
}

/** A sign of life, which may also be the one that makes this a good stream. */
function live(next: Draft, { now }: Moment): void {
  next.state = 'connected'
  next.lastByteAt = now
  if (!next.proved) return
  next.stale = false
  if (now - next.openedAt >= goodAfterMs) next.attempt = next.faults = 0
}

/**
 * A reload is dear, and one that is asked for again and again may be what keeps the reader behind. A few may follow each
 * other; then they are kept apart, by a wait before the connection that brings the next.
 */
function resync(next: Draft, moment: Moment): void {
  const { now } = moment
  const earliest = now + syncBurstMs
  next.syncAt = Math.min(Math.max(next.syncAt, now), earliest + syncEveryMs)
  if (next.syncAt > earliest) lose(next, moment, Math.min(next.syncAt - earliest, moment.maxRetryMs))
  else next.syncAt += syncEveryMs
}

function due(next: Draft, moment: Moment): void {
  const { now } = moment
  next.lastByteAt = Math.min(next.lastByteAt, now)
  // The end of a wait is believed without a look at the clock: had it been put back, the wait would grow by as much.
  if (!isOpen(next) || next.upgradeAt <= now) {
    open(next, moment)
  } else if (next.renewAt && next.renewAt <= now) {
    // The stream goes on until there are other credentials.
    next.renewAt = 0
  } else if (deadAt(next) <= now) {
    // Without a head it may as well be the network that is gone.
    if (next.lastByteAt === next.openedAt) countFault(next, next.answered ? 2 : 1.5, moment)
    // It has said something, and not `hello`: cut off in the middle of it, or no hub, which gets ever longer.
    else if (!next.proved) next.openMs *= 2
    // The first time, the silence was wait enough.
    lose(next, moment, 0, next.attempt ? undefined : 0)
  } else if (deadlineOf(next) <= now) {
    next.stale = true
    next.paused &&= 'late'
  }
}

/**
 * The network, the page or the tab is back. That is worth an attempt now, unless the server has said when to come, and
 * failures before it say nothing about those that may follow.
 */
function wake(next: Draft, moment: Moment): void {
  next.attempt = 0
  if ((isOpen(next) ? deadAt(next) : next.notBefore) <= moment.now) open(next, moment)
  // While it was hidden it waited for nothing.
  else if (!isOpen(next)) next.nextRetryAt ??= next.notBefore
}

function open(next: Draft, { now }: Moment, input?: { type: string; headers?: Headers }): void {
  if (next.upgradeAt <= now) {
    next.upgradeAt = never
    next.tier = 0
    // One sign that the better way is still barred is enough.
    next.faults = faultLimit
  }
  next.refresh ||= next.renewAt <= now
  next.state = 'connecting'
  next.generation++
  next.sent = next.cursor
  next.openedAt = next.lastByteAt = now
  next.silenceMs = next.openMs
  next.renewAt = never
  next.answered = next.proved = next.paused = next.asking = next.astray = false
  next.renewed = input?.headers
  next.nextRetryAt = next.closeReason = next.closeMessage = null
}

function lose(next: Draft, moment: Moment, retryAfterMs = 0, leastMs?: number): void {
  const { now, random, maxRetryMs: maxMs } = moment
  const baseMs = leastMs ?? Math.max(moment.retryMs, next.retryMs)
  if (next.attempt >= moment.maxRetries) {
    close(next, 'too-many-retries')
    return
  }
  // What a server asks for may exceed what the client would choose: the server knows why.
  const floorMs = Math.min(Math.max(baseMs, retryAfterMs), Math.max(maxMs, maxAskedMs))
  next.waitMs = Math.ceil(
    retryDelay(
      {
        failures: next.attempt++,
        baseMs,
        floorMs,
        maxMs,
        // A hub has told each of its readers a time of its own (§4.11); a `Retry-After` is the same for all.
        isSpread: next.isHub && floorMs <= next.retryMs,
        previousMs: next.waitMs,
      },
      random,
      moment.formula,
    ),
  )
  next.notBefore = now + Math.min(retryAfterMs, floorMs)
  rest(next, now + next.waitMs)
}

function rest(next: Draft, until: number | null): void {
  next.state = 'backoff'
  next.stale = true
  next.nextRetryAt = until
  next.timerAt = never
}

function close(next: Draft, closeReason: CloseReason): void {
  next.state = 'closed'
  next.nextRetryAt = null
  next.closeReason = closeReason
}

/** Evidence that this transport does not get through: after enough of it, the next one has its turn. */
function countFault(next: Draft, weight: number, { now, tiers }: Moment): void {
  next.faults += weight
  if (next.faults < faultLimit) return
  next.tier = (next.tier + 1) % tiers
  next.upgradeAt = next.tier ? now + (next.faults > faultLimit ? upgradeMs : secondLookMs) : never
  next.faults = 0
}

/** An empty id is a server's way to say that there is no cursor to come back with. */
function moveCursor(next: Draft, id: string | null): void {
  if (id === null) return
  next.cursor = id || null
  next.isLost = false
}

function deadlineOf(is: Connection): number {
  if (!isOpen(is)) return is.nextRetryAt ?? never
  // One heartbeat that is overdue is worth a word, two are worth a new connection. A handler that keeps us from reading
  // for as long is worth a word, too, whatever the line does.
  const lateMs = (is.silenceMs + slackMs) / 2
  const lateAt = is.lastByteAt + (is.paused ? Math.min(lateMs, maxOpenMs) : lateMs)
  const isToldLate = is.paused === true || (!is.stale && is.proved)
  return Math.min(is.renewAt || never, is.upgradeAt, isToldLate ? lateAt : deadAt(is))
}

/** While a handler is awaited nothing is read, and before credentials are there nothing is sent: silence says nothing. */
function deadAt(is: Connection): number {
  return is.paused || is.asking ? never : is.lastByteAt + is.silenceMs
}

/**
 * What runs a user's code comes last, as that code may step the machine again: what stood after it would then be done
 * for a state that has passed.
 */
function effectsOf(before: Connection, next: Connection): Effect[] {
  const isNew = next.generation !== before.generation
  const effects = [
    isOpen(before) && (isNew || !isOpen(next)) && 'abort',
    next.timerAt !== before.timerAt && 'timer',
    isNew && 'open',
    next.paused === 'late' && 'warn',
    announced.some((field) => next[field] !== before[field]) && 'notify',
    next.renewAt === 0 && before.renewAt && 'renew',
  ] as const
  return effects.filter(Boolean) as Effect[]
}

/** Whether there is a connection: connected or connecting. */
export function isOpen({ state }: Connection): boolean {
  return state.startsWith('connect')
}

/** Shown to the user on change. A cursor moves with every event, and a handler called that often would be a burden. */
const announced = ['state', 'attempt', 'nextRetryAt', 'stale', 'closeReason'] as const

export const shownFields = [...announced, 'closeMessage', 'lastEventAt', 'cursor'] as const

const finalAnswers: Partial<Record<number, CloseReason>> = {
  200: 'wrong-content-type',
  204: 'finished',
  401: 'unauthorized',
}

export interface Connection extends Omit<StreamState, 'transport'>, OpenRequest {
  /** The cursor that the current connection asked for. */
  readonly sent: string | null
  readonly openedAt: number
  readonly lastByteAt: number
  /** Silence after which the connection counts as dead. */
  readonly silenceMs: number
  /** The same for one that has not said anything yet: 30 s, until a hub has announced its heartbeat. */
  readonly openMs: number
  /** The head of a stream has arrived on this connection. */
  readonly answered: boolean
  /** `hello` or an event has arrived on this connection. */
  readonly proved: boolean
  /** The same on any connection: there is a stream at this address. */
  readonly known: boolean
  /** The server has greeted, on any connection. */
  readonly isHub?: boolean
  /** Nobody knows where this stream was when it was last open, and no server has been asked yet. */
  readonly isLost?: boolean | undefined
  /** Reading has to wait for a handler; `late` once it has done so for longer than for a heartbeat. */
  readonly paused: boolean | 'late'
  /** The user's code is asked for credentials, and the request has to wait. */
  readonly asking: boolean
  /** Which of the transports is used, and how much speaks against it. */
  readonly tier: number
  readonly faults: number
  /** When the first transport is tried again. */
  readonly upgradeAt: number
  /** When fresh credentials are asked for, to replace this connection by one that has them; 0 from then on. */
  readonly renewAt: number
  /** By when the reloads so far would be due, had they been kept apart. */
  readonly syncAt: number
  /** The last wait. */
  readonly waitMs?: number
  /** The server's last `retry:`. */
  readonly retryMs: number
  /** Before this a server has asked us not to come back. */
  readonly notBefore: number
  /** The hub did not see our cursor in the query either: this connection leaves something out, and the user must know. */
  readonly astray: boolean
  /** What the one timer is set for; infinite when it is not. */
  readonly timerAt: number
}

/** What a transport has to know of a connection that it is to make. */
export interface OpenRequest {
  /** Names the stream over all its connections. */
  readonly clientId: string
  /** Counts them. */
  readonly generation: number
  readonly cursor: string | null
  /** The cursor travels in the query: once a proxy was seen to strip the header, for good. */
  readonly inQuery: boolean
  /** The last connection was refused for its credentials, or ended because they had expired. */
  readonly refresh: boolean
  /** The headers with the credentials, when they have been asked for already. */
  readonly renewed?: Headers | undefined
}

export type Input =
  | Report
  /** Now, whatever there is or was. */
  | { readonly type: 'connect' }
  | { readonly type: 'timer' }
  /** The machine or the page was away and is back. */
  | { readonly type: 'wake' }
  /** The page was frozen and is no more. */
  | { readonly type: 'thaw' }
  /** The page is kept for the back button, or it is hidden and the user wants no connection then. */
  | { readonly type: 'hide' }
  | { readonly type: 'close' }

/** What there is to tell about a connection. */
export type Report =
  | ({ readonly type: 'answered' } & Answer)
  /** The transport cannot give what the user asks for, here or at all. */
  | { readonly type: 'unusable' }
  /** Anything at all arrived, a comment too: the line is alive. */
  | { readonly type: 'bytes' }
  /** The server's `retry:`. */
  | { readonly type: 'retry'; readonly ms: number }
  | ({ readonly type: 'hello' } & Greeting)
  /** An event, after its handlers were called; before, a page that is left in between would lose it. */
  | { readonly type: 'event'; readonly id: string | null }
  /** An id that came without an event for the user, which moves the cursor all the same. */
  | { readonly type: 'id'; readonly id: string | null }
  /** The user is about to be told of a gap; not if this ends the connection. */
  | { readonly type: 'sync' }
  /** Whether the user's code is being asked for credentials, so that nothing has been sent. */
  | { readonly type: 'asking'; readonly asking: boolean }
  /** There are credentials for the next connection. */
  | { readonly type: 'renewed'; readonly headers: Headers }
  /** Whether reading has to wait. */
  | { readonly type: 'paused'; readonly paused: boolean }
  | ({ readonly type: 'ended' } & Ending)

/** The connection is over. */
interface Ending {
  /** Why, when that is known: by the hub (§4.10), or by us. */
  readonly reason?: CloseReason | undefined
  /** How much this speaks against the transport, which cannot tell why it failed. */
  readonly against?: number
}

/** The head of a response. */
interface Answer {
  readonly status: number
  readonly isStream: boolean
  readonly retryAfterMs: number
  /** The request went to another address than that of the stream, which not every server has. */
  readonly isElsewhere?: boolean
  /** What the server says in the body by which it rejects the request. */
  readonly closeMessage?: string | false | null | undefined
}

interface Greeting {
  readonly id: string | null
  readonly hello: Partial<Hello>
}

/**
 * What to do about a step. `abort`: let go of the connection. `timer`: replace the one that was set by one for `timerAt`,
 * or by none. `open`: make the connection that the new state describes. `renew`: ask for credentials for the next one, and
 * tell when they are there. `warn`: name the handler that
 * keeps us from reading, unless that was done. `notify`: show the user.
 */
export type Effect = 'abort' | 'timer' | 'open' | 'warn' | 'renew' | 'notify'

export interface Step {
  readonly connection: Connection
  readonly effects: readonly Effect[]
}

/** When and with which luck a step is taken, and what the user has set. */
export interface Moment {
  readonly now: number
  random(): number
  readonly retryMs: number
  readonly maxRetryMs: number
  readonly maxRetries: number
  formula?: Formula | undefined
  /** How many transports there are. */
  readonly tiers: number
  /**
   * How often to look at the clock while there is a connection. A look that comes late by twice as much means that the
   * machine was frozen or asleep. Infinite where a page tells of that.
   */
  readonly tickMs: number
  /** Whether there is somebody to ask for other credentials. */
  readonly canRefresh: boolean
}

type Draft = { -readonly [Field in keyof Connection]: Connection[Field] }
