import { type Formula, retryDelay } from './backoff.ts'
import type { Answer, Ending, Greeting, Input } from './connection-input.ts'
import {
  droppedMs,
  faultLimit,
  goodAfterMs,
  maxAskedMs,
  maxOpenMs,
  never,
  quickMs,
  quickRetries,
  renewalShare,
  secondLookMs,
  slackMs,
  syncBurstMs,
  syncEveryMs,
  upgradeMs,
} from './connection-limits.ts'
import type { CloseReason, StreamState } from './stream-state.ts'

/**
 * The life of a stream across its connections, as a pure function: an input goes in, the next state and its effects
 * come out. The function has no timer, no clock and no socket, so a test can walk it through years in a millisecond.
 *
 * At most one connection is open at any time. Each connection has a generation. A report about any but the current
 * connection is ignored, because an aborted request may still deliver a chunk, an error or a rejection.
 *
 * @param generation - of the connection that a report is about; undefined for an input that is about no connection
 */
export function step(connection: Connection, input: Input, moment: Moment, generation?: number): Step {
  // A timer that has fired must be set again, even for the same time.
  const before = input.type === 'timer' ? { ...connection, timerAt: never } : connection
  // One copy per step. The reactions change it before it is returned.
  const next: Draft = { ...before }
  const isCurrent = generation === before.generation
  if (before.state === 'closed') {
    // A handler closed the stream. It did get this event, so the cursor that is stored must count the event. The same
    // holds when the user has dealt with a gap, an input that is about no connection.
    if ('id' in input && (isCurrent ? input.type === 'event' : generation === undefined)) moveCursor(next, input.id)
    // Only its owner closes a stream for good. A server that rejected the stream may accept it now. Failures start from
    // 0.
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
    // A timer that is too early stays as it is: when it fires, it is set again. So a stream full of events sets no
    // timers.
    next.state === before.state ? next.timerAt : never,
  )
  return { connection: next, effects: effectsOf(before, next) }
}

/**
 * The state before the first `connect`, which sets the other fields. A stream may have to load its cursor before that.
 */
export function newConnection(cursor: string | null, clientId: string): Connection {
  return {
    clientId,
    state: 'connecting',
    generation: 0,
    attempt: 0,
    cursor,
    tier: 0,
    faults: 0,
    upgradeAt: never,
    openMs: 30_000,
    stale: false,
    opened: false,
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
  // Chromium 156: a response whose body got bytes while the page was frozen never delivers another byte, and never
  // fails. A request that has not been sent yet is not affected.
  thaw: (next, moment) => isOpen(next) && !next.asking && open(next, moment),
  hide: (next) => rest(next),
  close: (next) => close(next, 'closed'),
  answered,
  unusable: skip,
  bytes: live,
  late(next) {
    next.stale = true
  },
  retry(next, _, { ms }) {
    next.retryMs = ms
  },
  hello: greeted,
  event(next, moment, { id }) {
    // On a hub, `hello` comes first and announces the heartbeat. A server that starts with an event announces none, so
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
  { status, isStream, retryAfterMs, isElsewhere, closeMessage, reason }: Answer,
): void {
  next.closeMessage = closeMessage || null
  if (isStream) {
    next.answered = true
    next.openedAt = next.lastByteAt = moment.now
    next.refresh = false
    // The state stays `connecting`, because a proxy may hold back the body. Only a server that is no hub may have
    // nothing to send.
    if (next.openMs === never) {
      next.state = 'connected'
      next.stale = false
    }
  } else if (status >= 500 || [408, 425, 429].includes(status) || (status === 200 && next.opened)) {
    // Where there was a stream, another page is the login of a network (captive portal), or a server that is half
    // restarted.
    lose(next, moment, retryAfterMs)
    next.faults = 0
    // A server that says when to come back has rejected the request on purpose (§4.12).
    if (retryAfterMs) next.closeReason ??= reason ?? 'overloaded'
  } else if (status === 401 && moment.canRefresh && !next.refresh) {
    next.refresh = true
    open(next, moment)
  } else if (isElsewhere && next.tier && status !== 204 && status !== 401) {
    // Not every server can be polled, and the stream must not close because of that. But such a server is no hub, so
    // its silence proves nothing.
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
    // A heartbeat may be late, so two must be missing. The slack is for a slow network.
    next.silenceMs = 2 * heartbeatMs + slackMs
    next.openMs = Math.min(next.silenceMs, maxOpenMs)
  }
  if (expiresInMs > 0 && moment.canRefresh) {
    next.renewAt = moment.now + Math.max(renewalShare * expiresInMs, goodAfterMs)
  }
  prove(next, moment)
  if (next.isLost) {
    // No hub knows the cursor `lost`, so this hub tells what may be gone (§4.6). Another server could take it for one
    // of its ids.
    moveCursor(next, 'lost')
    open(next, moment)
  } else if (next.sent === null || requested === next.sent) {
    moveCursor(next, id)
  } else if (requested !== undefined) {
    // A proxy removed the cursor, or answered with another reader's stream. This stream starts at another position, and
    // taking its id would skip events that the client has not seen (§4.4).
    next.astray = next.inQuery
    next.inQuery = true
    if (!next.astray) open(next, moment)
  }
}

function ended(next: Draft, moment: Moment, { reason, against }: Ending): void {
  if (next.proved) live(next, moment)
  if (reason === 'finished' || reason === 'too-large') {
    // The next connection would end in the same way.
    close(next, reason)
    return
  }
  // A server whose silence proves nothing is no hub. When it sends all that it has and ends the stream, that is no
  // fault.
  const isDropped = next.answered && moment.now - next.openedAt < droppedMs && next.silenceMs < never
  // Only a hub gives reasons after its answer.
  if (reason && next.answered) next.isHub = true
  if (!reason && isDropped) countFault(next, 1, moment)
  else if (against) countFault(next, against, moment)
  // A server that cannot be reached, or that ends a stream which did get through, explains the earlier faults.
  else next.faults = 0
  next.refresh ||= reason === 'token-expired'
  lose(next, moment)
  next.closeReason ??= reason ?? null
}

function prove(next: Draft, moment: Moment): void {
  next.proved = next.opened = true
  live(next, moment)
}

/** Notes a sign of life. It also makes a stream good that has proved itself and is old enough. */
function live(next: Draft, { now }: Moment): void {
  next.state = 'connected'
  next.lastByteAt = now
  if (!next.proved) return
  next.stale = false
  if (now - next.openedAt >= goodAfterMs) next.attempt = next.faults = 0
}

/**
 * A reload is expensive, and a reader may be behind because it reloads again and again. A few reloads may follow each
 * other. After that, a wait before the next connection keeps them apart.
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
  // The end of a wait is not compared with the clock: if the clock was put back, the wait would become longer by as
  // much.
  if (!isOpen(next) || next.upgradeAt <= now) {
    open(next, moment)
  } else if (next.renewAt && next.renewAt <= now) {
    // 0 asks for new credentials. The stream goes on until they arrive.
    next.renewAt = 0
  } else if (deadAt(next) <= now) {
    // Without a head, the whole network may be gone, so the fault counts less. Where nothing has ever arrived, the
    // server may be no hub, and the next transport will tell.
    if (!next.proved) countFault(next, next.answered ? (next.opened ? 2 : faultLimit) : 1.5, moment)
    // After the first failure no further wait is needed: the silence was long enough.
    lose(next, moment, 0, next.attempt ? undefined : 0)
  } else if (deadlineOf(next) <= now) {
    next.stale = true
    next.paused &&= 'late'
  }
}

/**
 * The network, the page or the tab is back. The stream connects now, unless it is still alive or the server has asked
 * it to come later. Earlier failures say nothing about the next ones.
 */
function wake(next: Draft, moment: Moment): void {
  next.attempt = 0
  if ((isOpen(next) ? deadAt(next) : next.notBefore) <= moment.now) open(next, moment)
  // A hidden stream has no time for its next attempt.
  else if (!isOpen(next)) next.nextRetryAt ??= next.notBefore
}

function open(next: Draft, { now }: Moment, input?: { type: string; headers?: Headers }): void {
  if (next.upgradeAt <= now) {
    next.upgradeAt = never
    next.tier = 0
    // One more fault is enough to leave the first transport again.
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
  const { attempt } = next
  if (attempt >= moment.maxRetries) {
    close(next, 'too-many-retries')
    return
  }
  const quick = attempt && next.quick!
  // An attempt that got no stream is no return, so it need not wait for `retry:` again. But a hub asks for a longer time
  // when many clients would return at once.
  const isQuick = moment.isAwaited && !next.answered && !retryAfterMs && next.retryMs <= quickMs && quick < quickRetries
  next.quick = isQuick ? quick + 1 : quick
  const maxMs = Math.min(moment.maxRetryMs, isQuick ? quickMs : never)
  const baseMs = leastMs ?? Math.max(moment.retryMs, isQuick ? 0 : next.retryMs)
  // A server may ask for a longer wait than the client would choose: the server knows why.
  const floorMs = Math.min(Math.max(baseMs, retryAfterMs), Math.max(maxMs, maxAskedMs))
  next.waitMs = Math.ceil(
    retryDelay(
      {
        // Quick retries say how long the server could not be reached, and not how often it has dropped its streams.
        failures: next.attempt++ - (isQuick ? 0 : quick),
        baseMs,
        floorMs,
        maxMs,
        // A hub gives each of its readers a different `retry:` (§4.11). A `Retry-After` is the same for all.
        isSpread: next.isHub && floorMs <= next.retryMs,
        previousMs: next.waitMs,
      },
      moment.random,
      moment.formula,
    ),
  )
  next.notBefore = moment.now + Math.min(retryAfterMs, floorMs)
  rest(next, moment.now + next.waitMs)
}

function rest(next: Draft, until: number | null = null): void {
  next.state = 'backoff'
  next.stale = true
  next.nextRetryAt = until
  next.timerAt = never
}

function close(next: Draft, closeReason: CloseReason): void {
  rest(next)
  next.state = 'closed'
  next.closeReason = closeReason
}

/** Counts evidence that this transport does not get through. With enough of it, the next transport is used. */
function countFault(next: Draft, weight: number, { now, tiers }: Moment): void {
  next.faults += weight
  if (next.faults < faultLimit) return
  next.tier = (next.tier + 1) % tiers
  next.upgradeAt = next.tier ? now + (next.faults > faultLimit ? upgradeMs : secondLookMs) : never
  next.faults = 0
}

/** A server sends an empty id to say that there is no cursor to come back with. */
function moveCursor(next: Draft, id: string | null): void {
  if (id === null) return
  next.cursor = id || null
  next.isLost = false
}

function deadlineOf(is: Connection): number {
  if (!isOpen(is)) return is.nextRetryAt ?? never
  // One overdue heartbeat makes the stream stale, a second one needs a new connection. A handler that keeps the client
  // from reading for as long makes the stream stale too, whatever the connection does.
  const lateMs = (is.silenceMs + slackMs) / 2
  const lateAt = is.lastByteAt + (is.paused ? Math.min(lateMs, maxOpenMs) : lateMs)
  const isToldLate = is.paused === true || (!is.stale && is.proved)
  return Math.min(is.renewAt || never, is.upgradeAt, isToldLate ? lateAt : deadAt(is))
}

/**
 * While a handler is awaited, nothing is read. Until the credentials arrive, nothing is sent. In both cases silence
 * proves nothing.
 */
function deadAt(is: Connection): number {
  return is.paused || is.asking ? never : is.lastByteAt + is.silenceMs
}

/**
 * Effects that run the user's code come last. That code may step the machine again, and an effect after it would then
 * be carried out for an old state.
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

/** Whether there is a connection, or one is being made. */
export function isOpen({ state }: Connection): boolean {
  return state.startsWith('connect')
}

/**
 * The fields whose change is told to the user. Not the cursor: it moves with every event, and a call for each would
 * cost too much.
 */
const announced = ['state', 'attempt', 'nextRetryAt', 'stale', 'closeReason'] as const

export const shownFields = [...announced, 'opened', 'closeMessage', 'lastEventAt', 'cursor'] as const

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
  /** The silence after which the connection counts as dead. */
  readonly silenceMs: number
  /**
   * Like `silenceMs`, for a connection on which nothing has arrived yet: 30 s, until a hub has announced its heartbeat.
   */
  readonly openMs: number
  /** The head of a stream has arrived on this connection. */
  readonly answered: boolean
  /** `hello` or an event has arrived on this connection. */
  readonly proved: boolean
  /** The stored cursor could not be read, and no server has given a new one yet. */
  readonly isLost?: boolean | undefined
  /** Reading waits for a handler. `late` once the wait is longer than for an overdue heartbeat. */
  readonly paused: boolean | 'late'
  /** The user's code is being asked for credentials, and the request waits for them. */
  readonly asking: boolean
  /** The index of the transport in use, and the faults that count against it. */
  readonly tier: number
  readonly faults: number
  /** When the first transport is tried again. */
  readonly upgradeAt: number
  /** When to ask for fresh credentials, with which the next connection replaces this one; 0 once they are asked for. */
  readonly renewAt: number
  /** When the next reload would be due, if reloads were always `syncEveryMs` apart. */
  readonly syncAt: number
  /** How many of the failures were followed by a quick retry, since `attempt` was 0. */
  readonly quick?: number
  /** The last wait before a retry. */
  readonly waitMs?: number
  /** The server's last `retry:`. */
  readonly retryMs: number
  /** The server has asked the client not to come back before this time. */
  readonly notBefore: number
  /**
   * The hub did not see the cursor in the query either. Events are missing on this connection, and the user must be
   * told.
   */
  readonly astray?: boolean | undefined
  /** The time that the timer is set for; infinite when none is set. */
  readonly timerAt: number
}

/** What a transport needs to know to make a connection. */
export interface OpenRequest {
  /** Names the stream, on all its connections. */
  readonly clientId: string
  /** Counts the connections of the stream. */
  readonly generation: number
  readonly cursor: string | null
  /** The cursor travels in the query. Set for good once a proxy was seen to strip the header. */
  readonly inQuery?: boolean | undefined
  /** The server has sent `hello`, or a reason for its end, on any connection. */
  readonly isHub?: boolean
  /** The server rejected the credentials of the last connection, or they had expired. */
  readonly refresh: boolean
  /** Headers with credentials, when these have been asked for already. */
  readonly renewed?: Headers | undefined
}

/**
 * What to do after a step. `abort`: end the connection. `timer`: replace the timer by one for `timerAt`, or by none.
 * `open`: make the connection that the new state describes. `renew`: ask for credentials for the next connection, and
 * tell when they arrive. `warn`: name the handler that keeps the client from reading, once. `notify`: tell the user of
 * the new state.
 */
export type Effect = 'abort' | 'timer' | 'open' | 'warn' | 'renew' | 'notify'

export interface Step {
  readonly connection: Connection
  readonly effects: readonly Effect[]
}

/** The time and the chance of a step, and the user's settings. */
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
   * How often to look at the clock while there is a connection. A look that is late by more than twice this time means
   * that the machine was frozen or asleep. Infinite in a page, where the browser tells of that.
   */
  readonly tickMs: number
  /** Whether somebody may be waiting for the stream, and the user has not said how to retry. */
  readonly isAwaited: boolean
  /** Whether `token` or `headers` is a function that can be asked for other credentials. */
  readonly canRefresh: boolean
}

type Draft = { -readonly [Field in keyof Connection]: Connection[Field] }
