import { createParser, type ParsedEvent } from '@rejoin/protocol'
import { nextTask } from './next-task.ts'

/**
 * The standard's `EventSource` (https://html.spec.whatwg.org/multipage/server-sent-events.html) over `fetch`, for Node
 * and for pages that have to send headers. It does what the standard says and no more: it gives up for good on any
 * status but 200, waits the same time before every reconnect, and knows nothing of `sync-required`. For a client that
 * survives all of that, use `connect` of `@rejoin/client`.
 *
 * Where the standard and the engines differ, this class does what the engines agree on: an id outlives its connection,
 * an `id` without a value removes the cursor, and every reconnect goes to the URL that was given, whatever the
 * redirect.
 */
export class EventSource extends (EventTarget as new () => StreamEventTarget) {
  declare static readonly CONNECTING: 0
  declare static readonly OPEN: 1
  declare static readonly CLOSED: 2
  declare readonly CONNECTING: 0
  declare readonly OPEN: 1
  declare readonly CLOSED: 2

  readonly #url: URL
  readonly #options: EventSourceOptions
  readonly #handlers = new Map<string, Handler>()
  readonly #ended = new AbortController()
  #readyState: 0 | 1 | 2 = 0
  #lastEventId: string
  #waitMs = 3000
  #timer: ReturnType<typeof setTimeout> | undefined

  /**
   * @param url - in a page, it may be relative
   * @throws DOMException `SyntaxError` when the URL cannot be parsed
   */
  constructor(url: string | URL, options: EventSourceOptions = {}) {
    super()
    this.#url = parseUrl(url)
    this.#options = options
    this.#lastEventId = options.lastEventId ?? ''
    // Both paths dispatch events in a later turn, so that the caller can register handlers first.
    if (/^https?:$/.test(this.#url.protocol)) void this.#connect()
    else this.#timer = setTimeout(() => this.#fail())
  }

  get url(): string {
    return this.#url.href
  }

  get withCredentials(): boolean {
    return !!this.#options.withCredentials
  }

  /** 0 `CONNECTING`, 1 `OPEN`, 2 `CLOSED`. */
  get readyState(): 0 | 1 | 2 {
    return this.#readyState
  }

  get onopen(): EventHandler<Event> {
    return this.#handler('open')
  }

  set onopen(handler: EventHandler<Event>) {
    this.#setHandler('open', handler)
  }

  get onmessage(): EventHandler<MessageEvent<string>> {
    return this.#handler('message') as EventHandler<MessageEvent<string>>
  }

  set onmessage(handler: EventHandler<MessageEvent<string>>) {
    this.#setHandler('message', handler as EventHandler<Event>)
  }

  get onerror(): EventHandler<Event> {
    return this.#handler('error')
  }

  set onerror(handler: EventHandler<Event>) {
    this.#setHandler('error', handler)
  }

  /** Closes the stream for good. No handler is called any more, not even for events that have already arrived. */
  close(): void {
    this.#readyState = 2
    clearTimeout(this.#timer)
    this.#ended.abort()
  }

  get [Symbol.toStringTag](): string {
    return 'EventSource'
  }

  async #connect(): Promise<void> {
    const { fetch = globalThis.fetch, withCredentials } = this.#options
    const { signal } = this.#ended
    let response: Response
    try {
      const request = {
        headers: await this.#headers(),
        credentials: withCredentials ? 'include' : 'same-origin',
        cache: 'no-store',
        signal,
      } as const
      if (signal.aborted) return
      response = await fetch(this.#url.href, request)
    } catch {
      // The network is away, the name is unknown, or the origin does not allow this page: `fetch` does not say which.
      return this.#reestablish()
    }
    const { status, headers, body } = response
    const isStream = status === 200 && /^\s*text\/event-stream\s*(;|$)/i.test(headers.get('content-type') ?? '')
    if (signal.aborted || !isStream) {
      // Nobody will read the body, and a connection with unread bytes stays open.
      await body?.cancel().catch(() => undefined)
      return this.#fail()
    }
    this.#readyState = 1
    this.dispatchEvent(new Event('open'))
    try {
      if (body && !(await this.#read(body, new URL(response.url || this.#url).origin))) return this.#fail()
    } catch {
      // The connection broke. Complete events have been dispatched; the reconnect asks for the others again.
    }
    this.#reestablish()
  }

  async #headers(): Promise<Headers> {
    const { headers } = this.#options
    const sent = new Headers(typeof headers === 'function' ? await headers() : headers)
    if (!sent.has('accept')) sent.set('accept', 'text/event-stream')
    const bytes = headerBytes(this.#lastEventId)
    if (bytes) sent.set('last-event-id', bytes)
    return sent
  }

  /** @returns false when an event is too large to be read, because it would be too large the next time as well */
  async #read(body: ReadableStream<Uint8Array>, origin: string): Promise<boolean> {
    let events: ParsedEvent[] = []
    const parser = createParser({
      lastEventId: this.#lastEventId,
      onEvent: (event) => void events.push(event),
      onRetry: (ms) => {
        this.#waitMs = ms
      },
    })
    // The parser drops the one leading BOM.
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    const reader = body.getReader()
    // The user's `fetch` may not pass the signal on.
    const cancel = () => void reader.cancel().catch(() => undefined)
    this.#ended.signal.onabort = cancel
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return true
      try {
        parser.feed(decoder.decode(value, { stream: true }))
      } catch {
        cancel()
        return false
      }
      const arrived = events
      events = []
      for (const [index, { type, data, id }] of arrived.entries()) {
        // Each event has a task of its own, so that the promises of its handlers settle before the next event.
        if (index > 0) await nextTask()
        if (this.#readyState === 2) return true
        this.#lastEventId = id
        this.dispatchEvent(new MessageEvent(type, { data, origin, lastEventId: id }))
      }
      this.#lastEventId = parser.lastEventId
    }
  }

  #reestablish(): void {
    if (this.#readyState === 2) return
    this.#readyState = 0
    this.#timer = setTimeout(() => void this.#connect(), this.#waitMs)
    this.dispatchEvent(new Event('error'))
  }

  #fail(): void {
    if (this.#readyState === 2) return
    this.close()
    this.dispatchEvent(new Event('error'))
  }

  #handler(type: string): EventHandler<Event> {
    return this.#handlers.get(type)?.call ?? null
  }

  /** A handler that replaces another keeps the order among the listeners. A handler that is removed loses it. */
  #setHandler(type: string, call: EventHandler<Event>): void {
    const present = this.#handlers.get(type)
    if (typeof call !== 'function') {
      if (present) this.removeEventListener(type, present.listener)
      this.#handlers.delete(type)
    } else if (present) {
      present.call = call
    } else {
      const listener = (event: Event) => this.#handlers.get(type)?.call.call(this, event)
      this.#handlers.set(type, { call, listener })
      this.addEventListener(type, listener)
    }
  }
}

for (const target of [EventSource, EventSource.prototype]) {
  for (const [value, name] of ['CONNECTING', 'OPEN', 'CLOSED'].entries()) {
    Object.defineProperty(target, name, { value, enumerable: true })
  }
}

export interface EventSourceOptions {
  /**
   * Sends cookies to another origin, too. That origin has to allow it.
   * @defaultValue false
   */
  readonly withCredentials?: boolean | undefined
  /**
   * Headers of every request. A function is called before each request, so that a token can be fresh. When the function
   * fails, the request counts as lost by the network, and is made again after the usual wait.
   * @defaultValue none but `Accept` and `Last-Event-ID`
   */
  readonly headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>) | undefined
  /**
   * Sends the requests, for example through a proxy or with certificates.
   * @defaultValue the global `fetch`
   */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
  /**
   * The id of the last event that was seen earlier, for example before a restart. The first request carries it as
   * `Last-Event-ID`, which the browser's own class cannot do.
   * @defaultValue '': the server chooses where the stream starts
   */
  readonly lastEventId?: string | undefined
}

/** The platform's `EventTarget`, with the types of a stream's events. */
interface StreamEventTarget extends EventTarget {
  addEventListener(
    type: 'open' | 'error',
    listener: Listener<Event> | null,
    options?: boolean | AddEventListenerOptions,
  ): void
  addEventListener(
    type: string,
    listener: Listener<MessageEvent<string>> | null,
    options?: boolean | AddEventListenerOptions,
  ): void
  removeEventListener(
    type: 'open' | 'error',
    listener: Listener<Event> | null,
    options?: boolean | EventListenerOptions,
  ): void
  removeEventListener(
    type: string,
    listener: Listener<MessageEvent<string>> | null,
    options?: boolean | EventListenerOptions,
  ): void
}

type EventHandler<Shown extends Event> = ((event: Shown) => unknown) | null
type Listener<Shown extends Event> = ((event: Shown) => unknown) | { handleEvent(event: Shown): unknown }

interface Handler {
  call: NonNullable<EventHandler<Event>>
  readonly listener: (event: Event) => void
}

function parseUrl(url: string | URL): URL {
  try {
    return new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href)
  } catch {
    throw new DOMException(
      `Cannot open an EventSource to '${url}'. Give a whole URL, or one relative to a page.`,
      'SyntaxError',
    )
  }
}

/**
 * The id as bytes of UTF-8, the form that a header takes. An id with control characters becomes empty: not every
 * `fetch` can send it, and without a request that succeeds the stream would never come back.
 */
function headerBytes(id: string): string {
  const bytes = Array.from(new TextEncoder().encode(id), (byte) => String.fromCharCode(byte)).join('')
  return /[\x00-\x08\x0a-\x1f\x7f]/.test(bytes) ? '' : bytes
}
