import {
  type ChannelIn,
  type ChannelMessageIn,
  type ChannelSchemas,
  type ChannelsOf,
  type ChannelTypes,
  type ErrorCode,
  type MessageIn,
  RejoinError,
} from '@rejoin/protocol'
import { resolveAddress } from '../address.ts'
import { retryDelay } from '../backoff.ts'
import { type Clock, systemClock } from '../clock.ts'
import { userHeaders } from '../credentials.ts'
import type { RequestOptions } from '../request.ts'
import { readRetryAfter } from '../retry-after.ts'

/**
 * Publishes to a hub over HTTP, each event once: when an answer is lost, the publish is sent again under the same key,
 * and the hub recognises it (§5.5).
 *
 * @param url - the URL of the hub's `/publish`; the origin alone will do where `/publish` is the whole path. In a page,
 * it may be relative.
 * @throws RejoinError `invalid-option`, when the URL cannot be used
 */
export function createPublisher<Given extends ChannelSchemas>(
  url: string | URL,
  options: PublisherOptions & { schemas: Given },
): TypedPublisher<ChannelsOf<Given>>
export function createPublisher(url: string | URL, options?: PublisherOptions): Publisher
export function createPublisher<Channels extends ChannelTypes>(
  url: string | URL,
  options?: PublisherOptions,
): TypedPublisher<Channels>
export function createPublisher(url: string | URL, options: PublisherOptions = {}): Publisher {
  const address = resolveAddress(url)
  // An origin alone stands for its `/publish`.
  if (address.pathname === '/') address.pathname = '/publish'
  const { maxRetries = 10, timeoutMs = 30_000, clock = systemClock } = options

  return {
    publish: (channel, message, call) => send({ channel, ...message }, call) as Promise<Published>,
    publishBatch: async (messages, call) => ((await send(messages, call)) as { events: Published[] }).events,
  }

  async function send(
    content: Content | readonly Content[],
    { idempotencyKey = randomKey(), signal }: PublishCall = {},
  ): Promise<unknown> {
    if (options.schemas) await (await import('./schema-check.ts')).checkSchemas(options.schemas, content)
    const body = writeJson(content)
    const giveUpAt = clock.now() + horizonMs
    let refresh = false
    for (let failures = 0; ; failures++) {
      const { answer, status, retryAfterMs, error } = await attempt(body, idempotencyKey, refresh, signal)
      if (!error) return answer
      signal?.throwIfAborted()
      // New credentials are asked for once after a 401. That is no failure of the hub, so there is no wait.
      const canRefresh =
        status === 401 && !refresh && [options.headers, options.token].some((given) => typeof given === 'function')
      if (canRefresh) {
        refresh = true
        failures--
      } else {
        // Without a network, retries would only be used up.
        const isOffline = globalThis.navigator?.onLine === false
        if (!error.retryable || (failures >= maxRetries && !isOffline)) throw error
        const delay = isOffline
          ? giveUpAt - clock.now()
          : retryDelay({ failures, baseMs, floorMs: retryAfterMs, maxMs }, () => clock.random())
        if (clock.now() + delay > giveUpAt) throw error
        await wait(delay, signal, isOffline)
        // A computer that slept during the wait wakes up much later.
        if (clock.now() > giveUpAt) throw error
      }
    }
  }

  async function attempt(body: string, key: string, refresh: boolean, signal?: AbortSignal): Promise<Attempted> {
    const { fetch = globalThis.fetch, credentials } = options
    const controller = new AbortController()
    const abort = () => controller.abort()
    // Without a limit, the system decides how long to wait on a dead connection, which can be a quarter of an hour.
    const timer = clock.setTimeout(abort, timeoutMs)
    signal?.addEventListener('abort', abort)
    try {
      signal?.throwIfAborted()
      // A token may never arrive, and nothing else would end the wait for it.
      const stopped = new Promise<never>((_, reject) =>
        controller.signal.addEventListener('abort', () => reject(controller.signal.reason)),
      )
      const headers = await Promise.race([userHeaders(options, { refresh, signal: controller.signal }), stopped])
      headers.set('Content-Type', 'application/json')
      headers.set('Idempotency-Key', key)
      // A redirect could lead to another server, which must get neither the events nor the credentials.
      const redirect = 'manual'
      const init = { method: 'POST', headers, body, credentials, redirect, signal: controller.signal } as RequestInit
      const response = await fetch(address, init)
      const { status } = response
      const retryAfterMs = readRetryAfter(response.headers, clock.now())
      if (response.ok) return { status, retryAfterMs, answer: readAnswer(await response.json()) }
      return { status, retryAfterMs, error: await readError(response) }
    } catch (cause) {
      const error = new RejoinError(`Cannot reach ${address.origin}. It may have the event.`, {
        code: 'unreachable',
        retryable: true,
        cause,
      })
      return { status: 0, retryAfterMs: 0, error }
    } finally {
      clock.clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
  }

  /** Ends sooner when the caller has lost interest. A wait for the network ends when the network is back. */
  function wait(ms: number, signal: AbortSignal | undefined, isOffline: boolean): Promise<void> {
    return new Promise((resolve) => {
      const timer = clock.setTimeout(end, ms)
      signal?.addEventListener('abort', end)
      if (isOffline) globalThis.addEventListener('online', end)
      function end(): void {
        clock.clearTimeout(timer)
        signal?.removeEventListener('abort', end)
        globalThis.removeEventListener?.('online', end)
        resolve()
      }
    })
  }
}

export interface Publisher {
  /**
   * Resolves with the event's id once the hub holds the event.
   *
   * @throws RejoinError with the hub's code when it rejects the event; `unreachable` when no hub answered. Rejects with
   * the signal's reason when the signal is aborted; the event may have been published all the same.
   */
  publish(channel: string, message: PublishMessage, call?: PublishCall): Promise<Published>
  /** Publishes all messages next to each other, or none. Resolves with their ids in the same order. */
  publishBatch(
    messages: readonly (PublishMessage & { readonly channel: string })[],
    call?: PublishCall,
  ): Promise<Published[]>
}

/**
 * A publisher that knows the events of each channel: a misspelt channel or type, or wrong data, does not compile.
 *
 * @typeParam Channels - the events of each channel, such as `{ 'orders/:id': { shipped: { at: number } } }`
 */
export interface TypedPublisher<Channels extends ChannelTypes> {
  /** Like `Publisher.publish`. */
  publish<Name extends ChannelIn<Channels>>(
    channel: Name,
    message: MessageIn<Channels, Name, MessageOptions>,
    call?: PublishCall,
  ): Promise<Published>
  /** Like `Publisher.publishBatch`. */
  publishBatch(
    messages: readonly ChannelMessageIn<Channels, MessageOptions>[],
    call?: PublishCall,
  ): Promise<Published[]>
}

export interface PublisherOptions extends RequestOptions {
  /**
   * Schemas for the events of channels, by channel (`news`, `orders/:id`) and type, from any library that follows
   * Standard Schema. A message that does not fit is not sent: the publish rejects with `invalid-data` or
   * `invalid-type`. The schemas also give the publisher its types.
   * @defaultValue none: the publisher checks nothing
   */
  schemas?: ChannelSchemas | undefined
  /**
   * How often a publish is tried again when the network fails, or when the hub does not answer in time or answers 408,
   * 425, 429 or 5xx. While the browser is offline, a publish waits for the network, which does not count. The waits double and are drawn at random; ten of them take 80 s on average. After ten minutes a
   * publish is not tried again, however many retries are left: the hub may have forgotten its key by then, and would
   * publish it twice.
   * @defaultValue 10
   */
  maxRetries?: number | undefined
  /**
   * How long to wait for an answer, in ms. After that the request counts as lost and is sent again.
   * @defaultValue 30 000
   */
  timeoutMs?: number | undefined
  /**
   * Time and chance, for tests.
   * @defaultValue the clock, the timers and `Math.random` of the platform
   */
  clock?: Clock | undefined
}

type Content = PublishMessage & { readonly channel: string }

/** Has either a JSON value as `data`, or `text` that is sent as it is. */
export type PublishMessage = MessageOptions & {
  /** @defaultValue 'message' */
  readonly type?: string
} & ({ readonly data: unknown; readonly text?: never } | { readonly text: string; readonly data?: never })

interface MessageOptions {
  /**
   * In a channel that retains: the key whose newest event this is (§5.9). A channel that does not retain rejects it.
   * @defaultValue the empty key
   */
  readonly key?: string | undefined
  /**
   * Makes the channel retain nothing under the key from now on.
   * @defaultValue false
   */
  readonly forget?: boolean | undefined
  /**
   * Sends the event only to readers that are connected now. The event is not kept, and readers that are away never hear
   * of it (§5.10).
   * @defaultValue false
   */
  readonly live?: boolean | undefined
}

export interface PublishCall {
  /** Ends the call and its retries. */
  signal?: AbortSignal | undefined
  /**
   * The hub carries out publishes with the same key only once. When your process may restart between two tries, give a
   * key that outlives it, such as an order number.
   * @defaultValue a random key for each call
   */
  idempotencyKey?: string | undefined
}

export interface Published {
  readonly id: string
}

interface Attempted {
  readonly status: number
  readonly retryAfterMs: number
  readonly answer?: unknown
  readonly error?: RejoinError
}

function writeJson(content: unknown): string {
  try {
    return JSON.stringify(content)
  } catch (cause) {
    throw new RejoinError('Data cannot be JSON. Give a BigInt as text, no cycles.', {
      code: 'invalid-data',
      cause,
    })
  }
}

/** @throws Error when this is not a hub's answer: the login page of a network may say 200 to everything */
function readAnswer(answer: unknown): unknown {
  const { id, events } = Object(answer) as { id?: unknown; events?: unknown }
  if (typeof id !== 'string' && !Array.isArray(events)) throw new Error('The answer has no id.')
  return answer
}

/** The error with the hub's own code and message; with the status, when something else answered. */
async function readError(response: Response): Promise<RejoinError> {
  const { status } = response
  const { error }: { error?: { code: ErrorCode; message: string } } = Object(await response.json().catch(() => null))
  const retryable = status >= 500 || [408, 425, 429].includes(status)
  // Any code of this form: a newer hub may have codes that this client does not know.
  if (error?.code && /^[a-z-]+$/.test(error.code))
    return new RejoinError(error.message, { code: error.code, retryable })
  // A browser shows a redirect as status 0.
  const advice = status < 400 ? 'Give the address it redirects to.' : 'Is it a hub’s /publish?'
  return new RejoinError(`${response.url} answers with status ${status}. ${advice}`, { code: 'unreachable', retryable })
}

function randomKey(): string {
  // Not `randomUUID`: pages without TLS do not have it.
  return crypto.getRandomValues(new Uint32Array(4)).join('-')
}

/** A hub keeps a key for at least this long (§5.5). A later retry could publish twice. */
const horizonMs = 600_000
const baseMs = 200
/** The longest wait that the publisher chooses. A server may ask for more. */
const maxMs = 60_000
