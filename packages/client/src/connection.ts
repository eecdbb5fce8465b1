import { type Hello, isIdText } from '@rejoin/protocol'
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
  // A timer that has fired is gone, also when it is to be set for the same time again.
  const before = input.type === 'timer' ? { ...connection, timerAt: never } : connection
  const changed = react(before, input, moment)
  const next = { ...changed, timerAt: timerFor(before, changed) }
  return { connection: next, effects: effectsOf(before, next) }
}

/** Where a stream stands before its first `connect`. */
export function newConnection(cursor: string | null): Connection {
  return {
    ...unread(0),
    state: 'backoff',
    generation: 0,
    attempt: 0,
    cursor,
    sent: cursor,
    cursorIn: 'header',
    retryMs: 0,
    notBefore: 0,
    lastEventAt: null,
    closeReason: null,
    timerAt: never,
  }
}

/** What is known of a connection of which nothing has been read. */
function unread(now: number) {
  return {
    openedAt: now,
    lastByteAt: now,
    silenceMs: openTimeoutMs,
    proved: false,
    paused: false,
    nextRetryAt: null,
    astray: false,
  }
}

function react(is: Connection, input: Input, moment: Moment): Connection {
  if (is.state === 'closed') {
    // A handler closed the stream. It did get this event, so whoever stores the cursor now must find it counted.
    return input.type === 'event' && input.generation === is.generation ? moveCursor(is, input.id) : is
  }
  switch (input.type) {
    case 'connect':
      return open(is, moment)
    case 'timer':
      return due(is, moment)
    case 'wake':
      return wake(is, moment)
    case 'close':
      return close(is, 'closed')
    default:
      return input.generation === is.generation && isOpen(is) ? hear(is, input, moment) : is
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
      const silenceMs = is.proved ? is.silenceMs : never
      return alive({ ...moveCursor(is, report.id), lastEventAt: moment.now, proved: true, silenceMs }, moment)
    }
    case 'id':
      return moveCursor(is, report.id)
    case 'paused':
      return { ...is, paused: report.paused, lastByteAt: moment.now }
    case 'ended':
      return report.final ? close(is, report.final) : lose(alive(is, moment), moment)
  }
}

function answered(is: Connection, { status, isEventStream, retryAfterMs }: Answer, moment: Moment): Connection {
  if (status === 200 && isEventStream) {
    return { ...is, state: 'connected', openedAt: moment.now, lastByteAt: moment.now }
  }
  if (status === 408 || status === 425 || status === 429 || status >= 500) return lose(is, moment, retryAfterMs)
  return close(is, finalAnswers[status] ?? `http-${status}`)
}

function greeted(is: Connection, { id, hello }: Greeting, moment: Moment): Connection {
  const { requested, heartbeatMs = 0 } = hello
  // Two heartbeats may be late, not lost; five seconds are for a slow network.
  const silenceMs = heartbeatMs > 0 ? 2 * heartbeatMs + 5_000 : never
  const known = alive({ ...is, proved: true, silenceMs }, moment)
  if (is.sent === null || requested === is.sent) return moveCursor(known, id)
  if (requested === undefined) return known
  // Something between us and the hub took the cursor away, or answered with another reader's stream. This one starts at
  // a place of its own, and taking its id would pass over what we have not seen (§4.4).
  if (is.cursorIn === 'header') return open({ ...is, cursorIn: 'query' }, moment)
  return { ...known, astray: true }
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
  if (deadlineOf(bounded) > moment.now) return bounded
  // The first time, the silence was wait enough.
  return is.attempt === 0 ? lose(is, moment, 0, 0) : lose(is, moment)
}

/** The network, the page or the tab is back, which is worth an attempt now; unless the server has said when to come. */
function wake(is: Connection, moment: Moment): Connection {
  const worthwhileAt = is.state === 'backoff' ? is.notBefore : deadlineOf(is)
  return worthwhileAt <= moment.now ? open(is, moment) : is
}

function open(is: Connection, { now }: Moment): Connection {
  return { ...is, ...unread(now), state: 'connecting', generation: is.generation + 1, sent: is.cursor }
}

function lose(
  is: Connection,
  { now, random, ...policy }: Moment,
  retryAfterMs = 0,
  baseMs = Math.max(policy.retryMs, is.retryMs),
): Connection {
  if (is.attempt >= policy.maxRetries) return close(is, 'too-many-retries')
  const maxMs = policy.maxRetryMs
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

/**
 * An empty id is a server's way to say that there is no place to come back to. One that could not be sent back is passed
 * over: a little too much is replayed then, and nothing is missed (§2.6).
 */
function moveCursor(is: Connection, id: string | null): Connection {
  if (id === '') return { ...is, cursor: null }
  return id !== null && isIdText(id) ? { ...is, cursor: id } : is
}

/** A timer that is early is left alone: when it fires, it is set again. So a stream full of events sets none. */
function timerFor(before: Connection, next: Connection): number {
  const deadline = deadlineOf(next)
  return next.state === before.state ? Math.min(deadline, next.timerAt) : deadline
}

function deadlineOf(is: Connection): number {
  if (is.state === 'backoff') return is.nextRetryAt ?? never
  // While an `onSync` handler is awaited nothing is read, so that silence says nothing about the line.
  return isOpen(is) && !is.paused ? is.lastByteAt + is.silenceMs : never
}

/**
 * What runs a user's code comes last, as that code may step the machine again: what stood after it would then be done
 * for a state that has passed.
 */
function effectsOf(before: Connection, next: Connection): Effect[] {
  const effects: Effect[] = []
  const isNew = next.generation !== before.generation
  if (isOpen(before) && (isNew || !isOpen(next))) effects.push({ type: 'abort' })
  if (next.timerAt !== before.timerAt) effects.push({ type: 'timer', at: next.timerAt })
  if (isNew) effects.push({ type: 'open' })
  if (announced.some((field) => next[field] !== before[field])) effects.push({ type: 'notify' })
  return effects
}

/** Whether there is a connection, made or in the making. */
export function isOpen({ state }: Connection): boolean {
  return state === 'connecting' || state === 'connected'
}

/** Shown to the user on change. A cursor moves with every event, and a handler called that often would be a burden. */
const announced = ['state', 'attempt', 'nextRetryAt', 'closeReason'] as const

const finalAnswers: Partial<Record<number, CloseReason>> = {
  200: 'wrong-content-type',
  204: 'finished',
  401: 'unauthorized',
}

const never = Infinity

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

export interface Connection extends StreamState, OpenRequest {
  /** The cursor that the current connection asked for. */
  readonly sent: string | null
  readonly openedAt: number
  readonly lastByteAt: number
  /** Silence after which the connection counts as dead. */
  readonly silenceMs: number
  /** `hello` or an event has arrived on this connection. */
  readonly proved: boolean
  readonly paused: boolean
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
  /** Counts the connections of a stream. */
  readonly generation: number
  readonly cursor: string | null
  /** Where the cursor travels. Once a proxy was seen to strip the header, the query takes its place for good. */
  readonly cursorIn: 'header' | 'query'
}

export type Input = Command | ({ readonly generation: number } & Report)

type Command =
  /** Now, whatever there is or was. */
  | { readonly type: 'connect' }
  | { readonly type: 'timer' }
  /** The machine or the page was away and is back. */
  | { readonly type: 'wake' }
  | { readonly type: 'close' }

/** What there is to tell about a connection. */
export type Report =
  | ({ readonly type: 'answered' } & Answer)
  /** Anything at all arrived, a comment too: the line is alive. */
  | { readonly type: 'bytes' }
  /** The server's `retry:`. */
  | { readonly type: 'retry'; readonly ms: number }
  | ({ readonly type: 'hello' } & Greeting)
  /** An event, after its handlers were called; before, a page that is left in between would lose it. */
  | { readonly type: 'event'; readonly id: string | null }
  /** An id that came without an event for the user, which moves the cursor all the same. */
  | { readonly type: 'id'; readonly id: string | null }
  /** Whether reading has to wait. */
  | { readonly type: 'paused'; readonly paused: boolean }
  /** The connection is over. `final`: the next one would meet the same end. */
  | { readonly type: 'ended'; readonly final?: CloseReason | undefined }

/** The head of a response. */
interface Answer {
  readonly status: number
  readonly isEventStream: boolean
  readonly retryAfterMs: number
}

interface Greeting {
  readonly id: string | null
  readonly hello: Partial<Hello>
}

export type Effect =
  | { readonly type: 'abort' }
  /** Replaces the timer that was set; infinite: by none. */
  | { readonly type: 'timer'; readonly at: number }
  /** Make the connection that the new state describes. */
  | { readonly type: 'open' }
  | { readonly type: 'notify' }

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
