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
  // One copy per step, changed in place until it is handed out: a copy costs about a microsecond (Node 20), and most
  // steps are events.
  const next: Draft = { ...connection }
  // A timer that has fired is gone, also when it is to be set for the same time again.
  if (input.type === 'timer') next.timerAt = never
  const { timerAt } = next
  react(next, input, moment)
  next.timerAt = timerFor(connection, next)
  return { connection: next, effects: effectsOf(connection, next, timerAt) }
}

/** Where a stream stands before its first `connect`. */
export function newConnection(cursor: string | null): Connection {
  return {
    state: 'backoff',
    generation: 0,
    attempt: 0,
    cursor,
    sent: cursor,
    cursorIn: 'header',
    openedAt: 0,
    lastByteAt: 0,
    silenceMs: never,
    proved: false,
    paused: false,
    astray: false,
    retryMs: 0,
    nextRetryAt: null,
    notBefore: 0,
    lastEventAt: null,
    closeReason: null,
    timerAt: never,
  }
}

function react(next: Draft, input: Input, moment: Moment): void {
  if (next.state === 'closed') {
    // A handler closed the stream. It did get this event, so whoever stores the cursor now must find it counted.
    if (isCurrent(next, input) && input.report.type === 'event') moveCursor(next, input.report.id)
  } else if (input.type === 'connect') {
    open(next, moment)
  } else if (input.type === 'timer') {
    due(next, moment)
  } else if (input.type === 'wake') {
    wake(next, moment)
  } else if (input.type === 'close') {
    close(next, 'closed')
  } else if (isCurrent(next, input) && isOpen(next)) {
    hear(next, input.report, moment)
  }
}

function isCurrent(is: Connection, input: Input): input is Reported {
  return input.type === 'report' && input.generation === is.generation
}

function hear(next: Draft, report: Report, moment: Moment): void {
  switch (report.type) {
    case 'answered':
      answered(next, report, moment)
      break
    case 'bytes':
      live(next, moment)
      break
    case 'retry':
      next.retryMs = report.ms
      break
    case 'hello':
      greeted(next, report, moment)
      break
    case 'event':
      // On a hub `hello` comes first and announces the heartbeat. A server that starts with an event announces none, so
      // its silence proves nothing.
      if (!next.proved) next.silenceMs = never
      next.proved = true
      next.lastEventAt = moment.now
      moveCursor(next, report.id)
      live(next, moment)
      break
    case 'id':
      moveCursor(next, report.id)
      break
    case 'paused':
      next.paused = report.paused
      next.lastByteAt = moment.now
      break
    case 'ended':
      live(next, moment)
      if (report.final) close(next, report.final)
      else lose(next, moment)
  }
}

function answered(next: Draft, { status, isEventStream, retryAfterMs }: Answer, moment: Moment): void {
  if (status === 200 && isEventStream) {
    next.state = 'connected'
    next.openedAt = next.lastByteAt = moment.now
  } else if (status === 408 || status === 425 || status === 429 || status >= 500) {
    lose(next, moment, retryAfterMs)
  } else {
    close(next, finalAnswers[status] ?? `http-${status}`)
  }
}

function greeted(next: Draft, { id, hello }: Greeting, moment: Moment): void {
  const { requested, heartbeatMs = 0 } = hello
  next.proved = true
  // Two heartbeats may be late, not lost; five seconds are for a slow network.
  next.silenceMs = heartbeatMs > 0 ? 2 * heartbeatMs + 5_000 : never
  live(next, moment)
  if (next.sent === null || requested === next.sent) {
    moveCursor(next, id)
  } else if (requested !== undefined) {
    // Something between us and the hub took the cursor away, or answered with another reader's stream. This one starts
    // at a place of its own, and taking its id would pass over what we have not seen (§4.4).
    next.astray = next.cursorIn === 'query'
    next.cursorIn = 'query'
    if (!next.astray) open(next, moment)
  }
}

/** A sign of life, which may also be the one that makes this a good stream. */
function live(next: Draft, { now }: Moment): void {
  next.lastByteAt = now
  if (next.proved && now - next.openedAt >= goodAfterMs) next.attempt = 0
}

function due(next: Draft, moment: Moment): void {
  next.lastByteAt = Math.min(next.lastByteAt, moment.now)
  // The end of a wait is believed without a look at the clock: had it been put back, the wait would grow by as much.
  if (next.state === 'backoff') open(next, moment)
  // The first time, the silence was wait enough.
  else if (deadlineOf(next) <= moment.now) lose(next, moment, 0, next.attempt === 0 ? 0 : undefined)
}

/** The network, the page or the tab is back, which is worth an attempt now; unless the server has said when to come. */
function wake(next: Draft, moment: Moment): void {
  const worthwhileAt = next.state === 'backoff' ? next.notBefore : deadlineOf(next)
  if (worthwhileAt <= moment.now) open(next, moment)
}

function open(next: Draft, { now }: Moment): void {
  next.state = 'connecting'
  next.generation++
  next.sent = next.cursor
  next.openedAt = next.lastByteAt = now
  next.silenceMs = openTimeoutMs
  next.proved = next.paused = next.astray = false
  next.nextRetryAt = null
}

function lose(next: Draft, moment: Moment, retryAfterMs = 0, baseMs = Math.max(moment.retryMs, next.retryMs)): void {
  const { now, random, maxRetryMs: maxMs } = moment
  const failures = next.attempt
  if (failures >= moment.maxRetries) {
    close(next, 'too-many-retries')
    return
  }
  const floorMs = Math.max(baseMs, retryAfterMs)
  next.state = 'backoff'
  next.attempt++
  next.nextRetryAt = now + retryDelay({ failures, baseMs, floorMs, maxMs }, random)
  next.notBefore = now + Math.min(retryAfterMs, maxMs)
}

function close(next: Draft, closeReason: CloseReason): void {
  next.state = 'closed'
  next.nextRetryAt = null
  next.closeReason = closeReason
}

/**
 * An empty id is a server's way to say that there is no place to come back to. One that could not be sent back is passed
 * over: a little too much is replayed then, and nothing is missed (§2.6).
 */
function moveCursor(next: Draft, id: string | null): void {
  if (id === '') next.cursor = null
  else if (id !== null && isIdText(id)) next.cursor = id
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
function effectsOf(before: Connection, next: Connection, timerAt: number): Effect[] {
  const effects: Effect[] = []
  const isNew = next.generation !== before.generation
  if (isOpen(before) && (isNew || !isOpen(next))) effects.push({ type: 'abort' })
  if (next.timerAt !== timerAt) effects.push({ type: 'timer', at: next.timerAt })
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

export type Input =
  | Reported
  /** Now, whatever there is or was. */
  | { readonly type: 'connect' }
  | { readonly type: 'timer' }
  /** The machine or the page was away and is back. */
  | { readonly type: 'wake' }
  | { readonly type: 'close' }

interface Reported {
  readonly type: 'report'
  readonly generation: number
  readonly report: Report
}

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

type Draft = { -readonly [Field in keyof Connection]: Connection[Field] }
