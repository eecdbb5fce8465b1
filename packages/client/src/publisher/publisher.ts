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
import { type RequestOptions, readRetryAfter } from '../request.ts'

/**
 * Publishes to a hub over HTTP, each event once: a publish whose answer was lost is sent again under the same key, and the
 * hub recognises it (§5.5).
 *
 * @param url - of the hub's `/publish`, which may be left out where nothing stands before it; in a page a relative one will do
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
  // A hub without a path is meant by its origin.
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
      // Refused credentials are asked for once more. It is no failure of the hub, so there is nothing to wait for.
      const canRefresh =
        status === 401 && !refresh && [options.headers, options.token].some((given) => typeof given === 'function')
      if (canRefresh) {
        refresh = true
        failures--
      } else {
        if (!error.retryable || failures >= maxRetries) throw error
        const delay = retryDelay({ failures, baseMs, floorMs: retryAfterMs, maxMs }, () => clock.random())
        if (clock.now() + delay > giveUpAt) throw error
        await wait(delay, signal)
        // A computer that slept wakes up much later.
        if (clock.now() > giveUpAt) throw error
      }
    }
  }

  async function attempt(body: string, key: string, refresh: boolean, signal?: AbortSignal): Promise<Attempted> {
    const { fetch = globalThis.fetch, credentials } = options
    const controller = new AbortController()
    const abort = () => controller.abort()
    // A line that died would be waited for as long as the system keeps it, which can be a quarter of an hour.
    const timer = clock.setTimeout(abort, timeoutMs)
    signal?.addEventListener('abort', abort)
    try {
      signal?.throwIfAborted()
      // A token may never come, and nothing else would end the wait for it.
      const stopped = new Promise<never>((_, reject) =>
        controller.signal.addEventListener('abort', () => reject(controller.signal.reason)),
      )
      const headers = await Promise.race([userHeaders(options, { refresh, signal: controller.signal }), stopped])
      headers.set('Content-Type', 'application/json')
      headers.set('Idempotency-Key', key)
      // A redirect could lead to another server, for which neither the events nor the credentials are meant.
      const redirect = 'manual'
      const init = { method: 'POST', headers, body, credentials, redirect, signal: controller.signal } as RequestInit
      const response = await fetch(address, init)
      const { status } = response
      const retryAfterMs = readRetryAfter(response.headers.get('retry-after'), clock.now())
      if (response.ok) return { status, retryAfterMs, answer: await response.json() }
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

  function wait(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = clock.setTimeout(() => {
        signal?.removeEventListener('abort', abort)
        resolve()
      }, ms)
      function abort(): void {
        clock.clearTimeout(timer)
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', abort, { once: true })
    })
  }
}

export interface Publisher {
  /**
   * Resolves with the event's id once the hub holds it.
   *
   * @throws RejoinError with the hub's code when it refuses the event; `unreachable` when no hub answered. Rejects with
   * the signal's reason when that is aborted; the event may have been published all the same.
   */
  publish(channel: string, message: PublishMessage, call?: PublishCall): Promise<Published>
  /** All of them, next to each other, or none. Resolves with their ids in the same order. */
  publishBatch(
    messages: readonly (PublishMessage & { readonly channel: string })[],
    call?: PublishCall,
  ): Promise<Published[]>
}

/**
 * A publisher that knows what may be published where: a misspelt channel or type, or wrong data, does not compile.
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
   * Schemas for the events of channels, by name (`news`, `orders/:id`) and type, of any library that follows Standard Schema.
   * What does not fit is not sent: the publish rejects with `invalid-data` or `invalid-type`. The publisher is typed by them.
   * @defaultValue none: nothing is checked here
   */
  schemas?: ChannelSchemas
  /**
   * How often a publish is tried again, when the network fails, the hub does not answer in time, or says that it cannot
   * now (408, 425, 429, 5xx). The waits double and are spread; ten of them take about a minute. After ten minutes a publish is
   * not tried again, however many tries are left: a hub may have forgotten its key by then, and would publish it twice.
   * @defaultValue 10
   */
  maxRetries?: number
  /**
   * How long to wait for an answer, in ms, before the request counts as lost and is sent again.
   * @defaultValue 30 000
   */
  timeoutMs?: number
  /**
   * Time and chance, for tests.
   * @defaultValue those of the platform
   */
  clock?: Clock
}

type Content = PublishMessage & { readonly channel: string }

/** A JSON value, or text that is sent as it is. */
export type PublishMessage = MessageOptions & {
  /** @defaultValue 'message' */
  readonly type?: string
} & ({ readonly data: unknown; readonly text?: never } | { readonly text: string; readonly data?: never })

interface MessageOptions {
  /**
   * In a channel that retains: the value that this event is the newest of (§5.9). A channel that retains nothing refuses it.
   * @defaultValue the empty one
   */
  readonly key?: string
  /**
   * Retains nothing under the key from now on.
   * @defaultValue false
   */
  readonly forget?: boolean
  /**
   * For those who read at this moment: the event is not kept, and who is away is not told of it (§5.10).
   * @defaultValue false
   */
  readonly live?: boolean
}

export interface PublishCall {
  /** Ends the call, and the waits between its retries. */
  signal?: AbortSignal
  /**
   * Under which the hub carries this out at most once. Give one that outlives your process, such as an order's number,
   * when what publishes may be restarted in between.
   * @defaultValue a random one for each call
   */
  idempotencyKey?: string
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

/** The hub's own words, or, when something else answered in its place, the status. */
async function readError(response: Response): Promise<RejoinError> {
  const { status } = response
  const { error }: { error?: { code: ErrorCode; message: string } } = Object(await response.json().catch(() => null))
  const retryable = status >= 500 || [408, 425, 429].includes(status)
  // Any code of this form: a newer hub may have one that is not known here.
  if (error && /^[a-z-]+$/.test(error.code)) return new RejoinError(error.message, { code: error.code, retryable })
  // A browser shows a redirect as status 0.
  const advice = status < 400 ? 'Give the address it redirects to.' : 'Is it a hub’s /publish?'
  return new RejoinError(`${response.url} answers with status ${status}. ${advice}`, { code: 'unreachable', retryable })
}

function randomKey(): string {
  // Not `randomUUID`, which pages without TLS do not have.
  return crypto.getRandomValues(new Uint32Array(4)).join('-')
}

/** A hub forgets no key that is younger (§5.5). A try that came later could publish twice. */
const horizonMs = 600_000
const baseMs = 200
/** Of the waits that it chooses itself. A server may ask for more. */
const maxMs = 60_000
