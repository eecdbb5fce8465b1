import { closeReasons, createParser, isReservedType, type ParsedEvent, type Parser } from '@rejoin/protocol'
import { type Connection, openConnection } from './connection.ts'
import { limitReqOf } from './limit-req.ts'
import { readNumbered } from './numbered-event.ts'
import type { Share } from './plan.ts'
import type { Published } from './publishing.ts'
import { createReaderRecord, type ReaderRecord } from './reader-record.ts'
import type { ResponseHead } from './response.ts'
import { addExample, countIn, type Tally } from './tally.ts'

/** One reader of a storm. Like every client, it returns with its cursor whenever its stream ends, until it is stopped. */
export interface StormReader {
  readonly state: 'connecting' | 'connected' | 'away' | 'stopped'
  readonly record: ReaderRecord
  readonly share: Share
  connect(): void
  /** Breaks the connection, if there is one. */
  cut(): void
  /** Makes a slow reader read at full speed from now on. */
  hurry(): void
  stop(): void
}

export interface StormReaderOptions {
  readonly number: number
  readonly share: Share
  /** The URL of the stream. */
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** Characters of data in each event. */
  readonly size: number
  /** How long the reader stays away after a cut; undefined for as long as the hub told it. */
  readonly awayMs: number | undefined
  readonly published: Readonly<Published>
  readonly tally: Tally
  /** Called with the reason why a stream did not begin. */
  onTrouble(trouble: Trouble): void
  onConnected(): void
}

/** Why a stream did not begin: the server's answer, its `close`, an error, or no `hello` in time. */
export type Trouble =
  | { readonly head: ResponseHead }
  | { readonly closed: string }
  | { readonly error: Error }
  | { readonly noHello: true }

export function createStormReader(options: StormReaderOptions): StormReader {
  const { number, share, url, headers, size, published, tally } = options
  const record = createReaderRecord()
  let state: StormReader['state'] = 'away'
  let isSlow = share.isSlow
  let connection: Connection | undefined
  let parser: Parser | undefined
  let timer: NodeJS.Timeout | undefined
  let cursor = ''
  /** Whether a stream has begun. The first `hello`, or the `sync-required` behind it, has an id, so every later stream should be asked for with a cursor. */
  let wasConnected = false
  let attempt = 0
  let retryMs = firstRetryMs
  let closed: string | undefined
  let wasAnswered = false
  let failures = 0
  /** The return that is under way. It is over when the reader has its first `to` events. */
  let catchingUp: { readonly since: number; readonly to: number } | undefined
  /** Since when the reader has been up to date. Earlier events are late because of its absence: their delay does not count. */
  let currentSince = Number.POSITIVE_INFINITY

  function connect(): void {
    state = 'connecting'
    attempt += 1
    closed = undefined
    wasAnswered = false
    currentSince = Number.POSITIVE_INFINITY
    catchingUp = cursor === '' ? undefined : { since: performance.now(), to: share.countOf(published.confirmed) }
    const target = new URL(url)
    target.searchParams.append('attempt', String(attempt))
    parser = createParser({ onEvent, onRetry: (ms) => (retryMs = ms), lastEventId: cursor })
    connection = openConnection(
      target,
      { ...headers, ...(cursor === '' ? {} : { 'Last-Event-ID': cursor }) },
      {
        onHead,
        onBody,
        onEnd,
      },
    )
    later(helloTimeoutMs, () => {
      connection?.cut()
      fail({ noHello: true }, wasAnswered ? 'no hello' : 'no answer')
    })
  }

  function fail(trouble: Trouble, why: string): void {
    options.onTrouble(trouble)
    countIn(tally.failures, why)
    failures += 1
    // Waits longer after each failure, as a good client does: an overloaded server needs time.
    goAway(retryMs * 2 ** Math.min(failures - 1, mostDoublings) * (1 + Math.random() / 4))
  }

  function onHead(head: ResponseHead): void {
    const { status, headers } = head
    wasAnswered = true
    const limited = limitReqOf(head)
    if (limited) tally.limitReq[limited] += 1
    if (status === 200 && headers.get('content-type')?.startsWith('text/event-stream')) return
    connection?.cut()
    options.onTrouble({ head })
    countIn(tally.rejections, status)
    goAway(Math.max(retryMs, Number(headers.get('retry-after') ?? 0) * 1000 || 0))
  }

  function onBody(text: string): void {
    if (state === 'away' || state === 'stopped') return
    const reading = parser
    try {
      reading?.feed(text)
    } finally {
      // Also when the parser fails in the middle of a piece: events that were noted must not be asked for again.
      cursor = reading?.lastEventId ?? cursor
    }
    if (!isSlow || state !== 'connected') return
    connection?.pause()
    later(slowEveryMs, () => connection?.resume())
  }

  function onEvent(event: ParsedEvent): void {
    if (event.type === 'hello') onHello(event)
    else if (event.type === 'sync-required') onGap()
    else if (event.type === 'close') onClose(event)
    else if (!isReservedType(event.type)) onMessage(event)
  }

  function onHello({ data }: ParsedEvent): void {
    clearTimeout(timer)
    failures = 0
    const { requested }: { requested?: unknown } = Object(parsed(data))
    if (cursor === '') {
      if (wasConnected) noteCursorless()
      else record.begin(share.countOf(published.sent))
      currentSince = performance.now()
    } else {
      tally.returns += 1
      if (requested !== cursor) tally.unseenCursors += 1
    }
    wasConnected = true
    state = 'connected'
    noteCaughtUp()
    options.onConnected()
  }

  /** The reader stays owed what it missed: without a cursor, the hub cannot send it. */
  function noteCursorless(): void {
    tally.cursorless += 1
    addExample(tally, { fault: 'cursorless', reader: number, selector: share.selector })
  }

  function onGap(): void {
    tally.gaps += 1
    catchingUp = undefined
    currentSince = performance.now()
    record.gap(share.countOf(published.sent))
  }

  function onClose({ data }: ParsedEvent): void {
    const { reason }: { reason?: unknown } = Object(parsed(data))
    closed = closeReasons.find((each) => each === reason) ?? 'unknown'
    countIn(tally.closes, closed)
  }

  function onMessage({ data, id }: ParsedEvent): void {
    const now = performance.now()
    const event = readNumbered(data, size)
    const index = event && event.number < published.sent ? share.indexOf(event.number) : undefined
    if (!event || index === undefined) {
      tally.foreign += 1
      addExample(tally, { fault: 'foreign', reader: number, selector: share.selector, id })
      return
    }
    const finding = record.event(index)
    if (finding !== 'doubled') tally.delivered += 1
    if (finding === 'doubled' || finding === 'late') {
      const fault = finding === 'late' ? 'disordered' : 'doubled'
      addExample(tally, { fault, reader: number, selector: share.selector, event: event.number, id })
    }
    if (event.at >= currentSince && !isSlow) tally.delay.add(now - event.at)
    noteCaughtUp()
  }

  function noteCaughtUp(): void {
    if (!catchingUp || state !== 'connected' || !record.hasReached(catchingUp.to)) return
    currentSince = performance.now()
    if (!isSlow) tally.catchUp.add(currentSince - catchingUp.since)
    catchingUp = undefined
  }

  function onEnd(error?: Error): void {
    if (state === 'connecting' && closed === undefined) {
      const code = (error as NodeJS.ErrnoException | undefined)?.code
      fail(error ? { error } : { noHello: true }, code ?? (wasAnswered ? 'no hello' : 'no answer'))
      return
    }
    if (closed === undefined) tally.drops += 1
    else if (state === 'connecting') options.onTrouble({ closed })
    goAway(retryMs)
  }

  function goAway(ms: number): void {
    connection = undefined
    parser = undefined
    if (state === 'stopped') return
    state = 'away'
    later(ms, connect)
  }

  function later(ms: number, act: () => void): void {
    clearTimeout(timer)
    timer = setTimeout(act, ms)
  }

  return {
    get state() {
      return state
    },
    record,
    share,
    connect,
    cut() {
      if (state !== 'connected') return
      connection?.cut()
      tally.cuts += 1
      goAway(options.awayMs ?? retryMs)
    },
    hurry() {
      if (isSlow && state === 'connected') clearTimeout(timer)
      isSlow = false
      connection?.resume()
    },
    stop() {
      state = 'stopped'
      clearTimeout(timer)
      connection?.cut()
    },
  }
}

// About as long as browsers wait when no server has told them a time.
const firstRetryMs = 2000
const mostDoublings = 4
// Longer than the ten seconds after which a hub that cannot judge a cursor sends `close`, `log-unavailable`.
const helloTimeoutMs = 15_000
// One read of at most 64 KB each time.
const slowEveryMs = 1000

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
