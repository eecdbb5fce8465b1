import { isIdText } from '@rejoin/protocol'
import { retryDelay } from './backoff.ts'
import type { CloseReason, StreamState } from './stream-state.ts'

/**
 * The life of a stream across its connections, as a pure function: what happened goes in, the next state and what to do
 * about it come out. It holds no timer, no clock and no socket, so a test can walk it through years in a millisecond.
 *
 * At most one connection is open at any time. Each has a generation, and what a transport reports about any but the
 * current one is ignored: an aborted request may still deliver a chunk, an error or a refusal.
 */
export function step(connection: Connection, input: Input, moment: Moment): Step {
  // A timer that has fired is gone; one that was replaced meanwhile says nothing.
  if (input.type === 'timer' && input.at !== connection.timerAt) return { connection, effects: [] }
  const before = input.type === 'timer' ? { ...connection, timerAt: null } : connection
  const changed = react(before, input, moment)
  const timerAt = timerFor(before, changed)
  const next = timerAt === changed.timerAt ? changed : { ...changed, timerAt }
  return { connection: next, effects: effectsOf(before, next) }
}

/** Where a stream stands before its `start`. */
export function newConnection(cursor: string | null): Connection {
  return {
    state: 'connecting',
    generation: 0,
    attempt: 0,
    cursor,
    sent: null,
    cursorIn: 'header',
    openedAt: 0,
    lastByteAt: 0,
    silenceMs: null,
    proved: false,
    paused: false,
    retryMs: 0,
    nextRetryAt: null,
    notBefore: 0,
    lastEventAt: null,
    closeReason: null,
    gap: null,
    timerAt: null,
  }
}

function react(is: Connection, input: Input, moment: Moment): Connection {
  if (is.state === 'closed') {
    // A handler closed the stream. It did get this event, so whoever stores the cursor now must find it counted.
    return input.type === 'event' && input.generation === is.generation ? moveCursor(is, input.id) : is
  }
  switch (input.type) {
    case 'start':
      return is.generation === 0 ? open(is, moment) : is
    case 'timer':
      return due(is, moment)
    case 'wake':
      return wake(is, moment)
    case 'reconnect':
      return open(is, moment)
    case 'close':
      return close(is, 'closed')
    default:
      return input.generation === is.generation && is.state !== 'backoff' ? hear(is, input, moment) : is
  }
}

function hear(is: Connection, report: Report, moment: Moment): Connection {
  switch (report.type) {
    case 'answered':
      return answered(is, report, moment)
    case 'bytes':
      return alive(is, moment)
    case 'retry':
      return { ...is, retryMs: report.ms }
    case 'hello':
      return greeted(is, report, moment)
    case 'event': {
      // On a hub `hello` comes first and announces the heartbeat. A server that starts with an event announces none, so
      // its silence proves nothing.
      const silenceMs = is.proved ? is.silenceMs : null
      return alive({ ...moveCursor(is, report.id), lastEventAt: moment.now, proved: true, silenceMs }, moment)
    }
    case 'id':
      return moveCursor(is, report.id)
    case 'paused':
      return { ...is, paused: true }
    case 'resumed':
      return { ...is, paused: false, lastByteAt: moment.now }
    case 'ended':
      return lose(alive(is, moment), moment)
    case 'failed':
      return report.final ? close(is, report.final) : lose(alive(is, moment), moment)
  }
}

function answered(is: Connection, answer: Answer, moment: Moment): Connection {
  const { status } = answer
  if (status === 200 && answer.isEventStream) {
    return { ...is, state: 'connected', openedAt: moment.now, lastByteAt: moment.now }
  }
  if (status === 408 || status === 425 || status === 429 || status >= 500) return lose(is, moment, answer.retryAfterMs)
  return close(is, status === 200 ? 'wrong-content-type' : (finalStatuses[status] ?? `http-${status}`))
}

function greeted(is: Connection, { id, requested, heartbeatMs }: Greeting, moment: Moment): Connection {
  // Two heartbeats may be late, not lost; five seconds are for a slow network.
  const silenceMs = heartbeatMs === null ? null : 2 * heartbeatMs + 5_000
  const known = alive({ ...is, proved: true, silenceMs }, moment)
  if (is.sent === null || requested === is.sent) return moveCursor(known, id)
  if (requested === undefined) return known
  // Something between us and the hub took the cursor away, or answered with another reader's stream. This one starts at
  // a place of its own, and taking its id would pass over what we have not seen (§4.4).
  if (is.cursorIn === 'header') return open({ ...is, cursorIn: 'query' }, moment)
  return { ...known, gap: { requested: is.sent, latest: id } }
}

/** A sign of life, which may also be the one that makes this a good stream. */
function alive(is: Connection, { now }: Moment): Connection {
  const good = is.proved && now - is.openedAt >= goodAfterMs
  return { ...is, lastByteAt: now, attempt: good ? 0 : is.attempt }
}

function due(is: Connection, moment: Moment): Connection {
  // Believed without a look at the clock: had it been put back, the wait would grow by as much.
  if (is.state === 'backoff') return open(is, moment)
  const bounded = { ...is, lastByteAt: Math.min(is.lastByteAt, moment.now) }
  if (!isOverdue(bounded, moment)) return bounded
  // The silence of a good stream was wait enough.
  return is.state === 'connected' && is.attempt === 0 ? lose(is, moment, 0, 0) : lose(is, moment)
}

/** The network, the page or the tab is back, which is worth an attempt now; unless the server has said when to come. */
function wake(is: Connection, moment: Moment): Connection {
  const worthwhile = is.state === 'backoff' ? is.notBefore <= moment.now : isOverdue(is, moment)
  return worthwhile ? open(is, moment) : is
}

function isOverdue(is: Connection, { now }: Moment): boolean {
  const deadline = deadlineOf(is)
  return deadline !== null && deadline <= now
}

function open(is: Connection, { now }: Moment): Connection {
  return {
    ...is,
    state: 'connecting',
    generation: is.generation + 1,
    sent: is.cursor,
    openedAt: now,
    lastByteAt: now,
    silenceMs: openTimeoutMs,
    proved: false,
    paused: false,
    nextRetryAt: null,
    notBefore: 0,
    gap: null,
  }
}

function lose(
  is: Connection,
  moment: Moment,
  retryAfterMs = 0,
  baseMs = Math.max(moment.retryMs, is.retryMs),
): Connection {
  const { now, random, maxRetryMs: maxMs } = moment
  if (is.attempt >= moment.maxRetries) return close(is, 'too-many-retries')
  const floorMs = Math.max(baseMs, retryAfterMs)
  return {
    ...is,
    state: 'backoff',
    attempt: is.attempt + 1,
    nextRetryAt: now + retryDelay({ failures: is.attempt, baseMs, floorMs, maxMs }, random),
    notBefore: now + Math.min(retryAfterMs, maxMs),
  }
}

function close(is: Connection, closeReason: CloseReason): Connection {
  return { ...is, state: 'closed', nextRetryAt: null, closeReason }
}

/** An id that could not be sent back is passed over: a little too much is replayed then, and nothing is missed (§2.6). */
function moveCursor(is: Connection, id: string | null): Connection {
  if (id === '') return { ...is, cursor: null }
  return id !== null && isIdText(id) ? { ...is, cursor: id } : is
}

/** A timer that is early is left alone: when it fires, it is set again. So a stream full of events sets none. */
function timerFor(before: Connection, next: Connection): number | null {
  const deadline = deadlineOf(next)
  const { timerAt } = next
  const keep = timerAt !== null && deadline !== null && timerAt <= deadline && next.state === before.state
  return keep ? timerAt : deadline
}

function deadlineOf(is: Connection): number | null {
  if (is.state === 'backoff') return is.nextRetryAt
  // While an `onSync` handler is awaited nothing is read, so that silence says nothing about the line.
  return is.state === 'closed' || is.paused || is.silenceMs === null ? null : is.lastByteAt + is.silenceMs
}

/**
 * What runs a user's code comes last, as that code may step the machine again: what stood after it would then be done
 * for a state that has passed.
 */
function effectsOf(before: Connection, next: Connection): Effect[] {
  const effects: Effect[] = []
  const { generation, cursor, cursorIn, attempt } = next
  const isNew = generation !== before.generation
  if (isOpen(before) && (isNew || !isOpen(next))) effects.push({ type: 'abort' })
  if (next.timerAt !== before.timerAt) effects.push({ type: 'timer', at: next.timerAt })
  if (isNew) effects.push({ type: 'open', generation, cursor, cursorIn, attempt })
  if (announced.some((field) => next[field] !== before[field])) effects.push({ type: 'notify' })
  return effects
}

function isOpen(is: Connection): boolean {
  return is.generation > 0 && (is.state === 'connecting' || is.state === 'connected')
}

/** Shown to the user on change. A cursor moves with every event, and a handler called that often would be a burden. */
const announced = ['state', 'attempt', 'nextRetryAt', 'closeReason'] as const

const finalStatuses: Partial<Record<number, CloseReason>> = {
  204: 'finished',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not-found',
  410: 'gone',
}

/**
 * A connection on which nothing has been read for this long is given up while the server's heartbeat is unknown: before
 * the response, and until `hello`.
 */
const openTimeoutMs = 30_000

/**
 * A stream this old that has shown `hello` or an event is good, and failures before it are forgotten. Forgetting them at
 * the response would make a server that accepts and drops be asked without pause.
 */
const goodAfterMs = 5_000

export interface Connection extends StreamState {
  /** Counts connections. 0: not started. */
  readonly generation: number
  /** The cursor that the current connection asked for. */
  readonly sent: string | null
  /** Where the cursor travels. Once a proxy was seen to strip the header, the query takes its place for good. */
  readonly cursorIn: 'header' | 'query'
  readonly openedAt: number
  readonly lastByteAt: number
  /** Silence after which the connection counts as dead. `null`: it never does. */
  readonly silenceMs: number | null
  /** `hello` or an event has arrived on this connection. */
  readonly proved: boolean
  readonly paused: boolean
  /** The server's last `retry:`. */
  readonly retryMs: number
  /** Before this a server has asked us not to come back. */
  readonly notBefore: number
  /** The hub did not see our cursor in the query either: this connection leaves something out, and the user must know. */
  readonly gap: { readonly requested: string; readonly latest: string | null } | null
  /** What the one timer is set for. */
  readonly timerAt: number | null
}

export type Input = Command | ({ readonly generation: number } & Report)

type Command =
  | { readonly type: 'start' | 'reconnect' | 'close' }
  | { readonly type: 'timer'; readonly at: number }
  /** The machine or the page was away and is back. */
  | { readonly type: 'wake' }

/** What a transport has to tell about its connection. */
export type Report =
  | ({ readonly type: 'answered' } & Answer)
  | { readonly type: 'bytes' }
  | { readonly type: 'retry'; readonly ms: number }
  | ({ readonly type: 'hello' } & Greeting)
  /** An event, after its handlers were called; before, a reload in between would lose it. */
  | { readonly type: 'event'; readonly id: string | null }
  /** An id that came without an event for the user, which moves the cursor all the same. */
  | { readonly type: 'id'; readonly id: string | null }
  /** Nothing is read until `resumed`. */
  | { readonly type: 'paused' | 'resumed' }
  | { readonly type: 'ended' }
  /** `final`: trying again would meet the same failure. */
  | { readonly type: 'failed'; readonly final: CloseReason | null }

export interface Answer {
  readonly status: number
  readonly isEventStream: boolean
  readonly retryAfterMs: number
}

interface Greeting {
  readonly id: string | null
  /** `undefined`: the server does not tell. */
  readonly requested: string | null | undefined
  readonly heartbeatMs: number | null
}

export type Effect =
  | { readonly type: 'abort' }
  | ({ readonly type: 'open' } & OpenRequest)
  /** Replaces the timer that was set; `null` clears it. */
  | { readonly type: 'timer'; readonly at: number | null }
  | { readonly type: 'notify' }

export interface OpenRequest {
  readonly generation: number
  readonly attempt: number
  readonly cursor: string | null
  readonly cursorIn: 'header' | 'query'
}

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
}
