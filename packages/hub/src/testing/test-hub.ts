import type { ChannelSchemas, ChannelsOf, ChannelTypes } from '@rejoin/protocol'
import type { Environment } from '../environment.ts'
import { hubEndpoints, isReaderEndpoint } from '../http/endpoints.ts'
import { type FetchHandler, fetchHandler } from '../http/fetch.ts'
import type { AdapterOptions, BasePathOptions } from '../http/options.ts'
import { isPoll } from '../http/poll.ts'
import { parseTarget } from '../http/target.ts'
import { createHub } from '../hub/create-hub.ts'
import type { Hub, TypedHub } from '../hub/hub.ts'
import type { HubOptions } from '../hub/hub-options.ts'
import type { Grant } from '../hub/readers/grant.ts'
import { invalidOption } from '../invalid-option.ts'
import type { MemoryLogOptions } from '../log/memory/log.ts'
import { createFaultyNetwork } from './faulty-network.ts'
import { coldBytes, keptLog } from './kept-log.ts'
import { createRevocableRights } from './revocable-rights.ts'
import { createVirtualEnvironment } from './virtual-environment.ts'

export interface TestHubOptions
  extends Omit<HubOptions, 'log' | 'environment' | 'hotBytes'>,
    Pick<AdapterOptions<[Request]>, 'authorize'>,
    Pick<MemoryLogOptions, 'window' | 'windows'>,
    BasePathOptions {
  /**
   * The virtual time at which the test begins, in milliseconds since 1970.
   * @defaultValue the first of January 2026, 00:00 UTC
   */
  now?: number | undefined
  /**
   * The seed of all chance, such as how long readers wait. The same seed gives the same test.
   * @defaultValue 1
   */
  seed?: number | undefined
}

/**
 * A hub in the process of a test, in virtual time, on a network in memory that the test can break. The hub, its log, its streams
 * and its polls are the real ones; only sockets and time are not. Every method waits until nothing moves, does its work, and
 * waits again, so a test needs no sleeps.
 */
export interface TestHub<Served extends AnyHub = Hub> {
  /** The present hub. `restart` replaces it. */
  readonly hub: Served
  /** Publishes an event, and resolves when all connected readers have it. */
  readonly publish: Served['publish']
  /** Answers requests for the hub, across the network. */
  readonly fetch: typeof globalThis.fetch
  /** The clock that hub and readers share. Give it to `connect` as `clock`, or call `attachTo` of `@rejoin/client/testing`. */
  readonly clock: TestClock
  /** Whether a request for this URL goes to the hub. All other requests are the application's own. */
  answers(url: string | URL): boolean
  /**
   * Breaks every stream and poll, also in the middle of an event. New ones fail for `forMs` of virtual time.
   * @param forMs - left out, new ones fail until `heal`
   */
  cut(forMs?: number): Promise<void>
  /** Ends `cut` and `slow`. Readers return when their wait is over: call `advance`. */
  heal(): Promise<void>
  /**
   * Limits the speed of each stream and poll, in bytes per second of virtual time. With 0, connections stay open and nothing gets
   * through, as on a network that fails without closing its connections.
   */
  slow(bytesPerSecond: number): Promise<void>
  /**
   * With `'events'`, all events that the hub holds become too old for their window. A reader that missed some of them is told
   * `sync-required`, `expired`, when it returns. With `'token'`, all streams close because their rights have expired, and readers
   * return with a fresh token.
   * @param what - `'events'` when left out
   */
  expire(what?: Expiring): Promise<void>
  /**
   * Replaces the hub, as a deployment does: streams are closed with `drain`, and readers return.
   * @param events - `'kept'` (when left out): the log outlives the hub, and readers miss nothing. `'lost'`: the new hub starts
   * with an empty log, and readers are told `sync-required`, `epoch`.
   */
  restart(events?: Restarting): Promise<void>
  /**
   * Revokes the rights of a subject, or of everybody: streams are closed, and requests with the same credentials are answered
   * with 401. New credentials are let in.
   */
  revoke(subject?: string): Promise<void>
  /** Lets virtual time pass, and runs the timers that are due in it. */
  advance(ms: number): Promise<void>
  /** Waits until nothing moves any more. Needed only after an action outside this object, such as a click on the page. */
  settle(): Promise<void>
  /** Adds a page that reads from this hub. `settle` then waits for the page, too, and `close` makes it leave. */
  join(page: TestPage): void
  /** Closes the hub, and makes all pages leave. */
  close(): Promise<void>
}

/** A hub, typed or not: the types of its channels do not matter here. */
export type AnyHub = Pick<Hub, Exclude<keyof Hub, 'publish' | 'publishBatch'>> & {
  publish(...given: never[]): Promise<unknown>
}

export type Expiring = 'events' | 'token'
export type Restarting = 'kept' | 'lost'

/** The clock, the timers and the chance that readers use. */
export interface TestClock {
  now(): number
  random(): number
  setTimeout(callback: () => void, ms: number): unknown
  clearTimeout(timer: unknown): void
}

/** A page, in the process of the test, whose streams read from the hub. */
export interface TestPage {
  /** Resolves when the page has loaded the parts of its code that it loads later. Called before virtual time goes on. */
  loaded(): Promise<void>
  /** Resolves when the page has rendered the events that it has read; false when there was nothing to render. */
  settle(): Promise<boolean>
  leave(): void
}

/**
 * Opens a hub for tests. Typed like `createHub`.
 *
 * ```ts
 * const hub = attachTo(await createTestHub())
 * onTestFinished(hub.close)
 * ```
 */
export function createTestHub<Given extends ChannelSchemas>(
  options: TestHubOptions & { schemas: Given },
): Promise<TestHub<TypedHub<ChannelsOf<Given>>>>
export function createTestHub(options?: TestHubOptions): Promise<TestHub>
export function createTestHub<Channels extends ChannelTypes>(
  options?: TestHubOptions,
): Promise<TestHub<TypedHub<Channels>>>
export async function createTestHub(options: TestHubOptions = {}): Promise<TestHub> {
  const { authorize = everything, basePath = '', window, windows, now, seed, ...hubOptions } = options
  /** Counts every movement. When it stays the same between two looks, everything is at rest. */
  let activity = 0
  const moved = () => {
    activity += 1
  }
  const virtual = createVirtualEnvironment({ ...(now && { now }), ...(seed && { seed }), isBusy })
  // Only time is virtual; turns of the event loop are real. So code of the application gets its answers even while the test
  // calls no method of this object.
  const environment: Environment = {
    ...virtual,
    after(delayMs, task) {
      moved()
      return virtual.after(delayMs, task)
    },
    endOfTurn(task) {
      setImmediate(() => {
        moved()
        task()
      })
    },
  }
  const log = keptLog({ ...(window && { window }), ...(windows && { windows }) })
  const network = createFaultyNetwork(environment, moved)
  const rights = createRevocableRights()
  const pages = new Set<TestPage>()
  let unanswered = 0
  let isClosed = false
  let serving = await open()

  async function open(): Promise<Serving> {
    const hub = await createHub({ ...hubOptions, hotBytes: coldBytes, log, environment })
    const handler = fetchHandler(hub, {
      basePath,
      authorize: (request) => rights.of(credentialsOf(request), () => authorize(request)),
    })
    return { hub, handler }
  }

  /** Lets some turns of the event loop pass, and tells whether something moved in them. */
  async function isBusy(): Promise<boolean> {
    const before = activity
    const deadline = performance.now() + patienceMs
    for (let turns = 0; turns < quietTurns || (unanswered > 0 && performance.now() < deadline); turns += 1) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    for (const page of pages) await page.loaded()
    return activity !== before
  }

  async function settle(): Promise<void> {
    let isQuiet = false
    while (!isQuiet) {
      await virtual.settle()
      const before = activity
      isQuiet = true
      for (const page of pages) if (await page.settle()) isQuiet = false
      if (activity !== before) isQuiet = false
    }
  }

  /** Settles before `act`, so that the page has opened its streams, and after it, so that the test sees the result. */
  async function settled<Result>(act: () => Result | Promise<Result>): Promise<Result> {
    await settle()
    const result = await act()
    await settle()
    return result
  }

  async function fetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    if (isClosed) throw new TypeError('fetch failed')
    const { handler } = serving
    const request = requestOf(input, init)
    const target = parseTarget(request.url).below(basePath)
    // Nobody waits for the answer to a poll: it may come with the next event only.
    const isAwaited = target.endpoint !== 'poll' && !isPoll(target)
    if (isAwaited) unanswered += 1
    try {
      // Publishes do not cross the faulty network, so that a test can publish during a cut.
      return await (isReaderEndpoint(target.endpoint) ? network.carry(request, handler) : handler(request))
    } finally {
      if (isAwaited) unanswered -= 1
      moved()
    }
  }

  return {
    get hub() {
      return serving.hub
    },
    publish: (...given) => settled(() => serving.hub.publish(...given)),
    fetch,
    clock: {
      now: environment.now,
      random: environment.random,
      setTimeout: (callback, ms) => environment.after(ms, callback),
      clearTimeout: (cancel) => (cancel as (() => void) | undefined)?.(),
    },
    answers(url) {
      const { endpoint } = parseTarget(String(url)).below(basePath)
      return (hubEndpoints as readonly string[]).includes(endpoint)
    },
    cut: (forMs = Number.POSITIVE_INFINITY) => settled(() => network.cut(checked('forMs', forMs))),
    heal: () => settled(network.heal),
    slow: (bytesPerSecond) => settled(() => network.slow(checked('bytesPerSecond', bytesPerSecond))),
    expire: (what = 'events') =>
      settled(() => {
        if (what === 'events') return log.expire()
        for (const { connection } of serving.hub.admin.connections())
          serving.hub.admin.disconnectHere(connection, expired)
      }),
    restart: (events = 'kept') =>
      settled(async () => {
        isClosed = true
        await serving.hub.close()
        if (events === 'lost') await log.lose()
        serving = await open()
        isClosed = false
      }),
    revoke: (subject) =>
      settled(async () => {
        await Promise.all(rights.revoke(subject).map((each) => serving.hub.revoke(each)))
      }),
    advance: (ms) => settled(() => virtual.advance(checked('ms', ms))),
    settle,
    join(page) {
      pages.add(page)
    },
    async close() {
      isClosed = true
      await serving.hub.close()
      await log.lose()
      await settle()
      for (const page of pages) page.leave()
      pages.clear()
    },
  }
}

interface Serving {
  readonly hub: Hub
  readonly handler: FetchHandler<[]>
}

// Turns of the event loop without movement that count as quiet. A chunk takes one or two from the hub to the client's handler.
const quietTurns = 8
// How long `authorize` may take, in real time, before virtual time goes on without its answer.
const patienceMs = 1000

const expired = { reason: 'token-expired' } as const

function everything(): Grant {
  return { subject: null, subscribe: ['*'], publish: ['*'] }
}

function credentialsOf({ headers }: Request): string {
  return `${headers.get('authorization') ?? ''}\n${headers.get('cookie') ?? ''}`
}

/** Sets the signal after the construction: `Request` rejects the signals of a simulated page, such as jsdom's. */
function requestOf(input: string | URL | Request, { signal, ...init }: RequestInit): Request {
  if (input instanceof Request) return new Request(input, init)
  const { document } = globalThis as { document?: { baseURI?: string } }
  const base = document?.baseURI?.startsWith('http') ? document.baseURI : 'http://test-hub/'
  const request = new Request(new URL(input, base), init)
  if (signal) Object.defineProperty(request, 'signal', { value: signal, configurable: true })
  return request
}

function checked(name: string, value: number): number {
  if (value >= 0) return value
  throw invalidOption(`${name} is ${value}. Give 0 or more.`)
}
