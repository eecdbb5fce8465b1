import { type ChannelSchemas, type ChannelsOf, type ChannelTypes, RejoinError } from '@rejoin/protocol'
import type { Environment } from '../environment.ts'
import { hubEndpoints, isReaderEndpoint } from '../http/endpoints.ts'
import { type FetchHandler, fetchHandler } from '../http/fetch.ts'
import type { AdapterOptions, BasePathOptions } from '../http/options.ts'
import { parseTarget } from '../http/target.ts'
import { createHub } from '../hub/create-hub.ts'
import type { Hub, TypedHub } from '../hub/hub.ts'
import type { HubOptions } from '../hub/hub-options.ts'
import type { Grant } from '../hub/readers/grant.ts'
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
   * When time begins, in milliseconds since 1970.
   * @defaultValue the first of January 2026, 00:00 UTC
   */
  now?: number
  /**
   * What chance comes from, such as how long readers wait. The same seed gives the same test.
   * @defaultValue 1
   */
  seed?: number
}

/**
 * A hub in the process of a test, in virtual time, on a network in memory that the test can break. It is the hub itself, with its
 * log, its streams and its polls: only sockets and time are not real. Every method waits until nothing moves, does its work, and
 * waits again, so a test sleeps nowhere.
 */
export interface TestHub<Served extends AnyHub = Hub> {
  /** The hub. Another one after `restart`. */
  readonly hub: Served
  /** Publishes, and resolves when the readers that are connected have the event. */
  readonly publish: Served['publish']
  /** Answers requests for the hub, across the network. */
  readonly fetch: typeof globalThis.fetch
  /** The time that hub and readers share. Give it to `connect` as `clock`, or call `attachTo` of `@rejoin/client/testing`. */
  readonly clock: TestClock
  /** Whether a request with this URL is for the hub. The others are the application's own. */
  answers(url: string | URL): boolean
  /**
   * Breaks every stream and poll, in the middle of what it carries. New ones fail for `forMs` of virtual time.
   * @param forMs - left out, until `heal`
   */
  cut(forMs?: number): Promise<void>
  /** Ends what `cut` and `slow` have begun. Readers come back when their wait is over: `advance`. */
  heal(): Promise<void>
  /**
   * Lets each stream and poll carry so many bytes per second of virtual time. With 0, connections stay open and nothing gets
   * through, as when a network dies without a word.
   */
  slow(bytesPerSecond: number): Promise<void>
  /**
   * `'events'`: everything that the hub holds is now too old for its window. A reader that missed some of it is told
   * `sync-required`, `expired`, when it returns. `'token'`: the rights of all streams have run out, and their readers come back
   * with a fresh token.
   * @param what - 'events' when left out
   */
  expire(what?: Expiring): Promise<void>
  /**
   * Replaces the hub, as a new version of it would: streams are closed with `drain`, and readers return.
   * @param events - `'kept'`, when left out: the log outlives the hub, and nobody misses anything. `'lost'`: the new hub begins
   * with an empty log, and readers are told `sync-required`, `epoch`.
   */
  restart(events?: Restarting): Promise<void>
  /**
   * Takes back the rights of a subject, or of everybody: streams are closed, and requests with the same credentials are answered
   * with 401. New credentials are let in.
   */
  revoke(subject?: string): Promise<void>
  /** Lets virtual time pass, running what is due in it. */
  advance(ms: number): Promise<void>
  /** Waits until nothing moves any more. Needed only after something that the test did not do through this object. */
  settle(): Promise<void>
  /** Adds a page that reads here: `settle` waits for it, too, and `close` lets it go. */
  join(page: TestPage): void
  /** Lets go of the pages, and closes the hub. */
  close(): Promise<void>
}

/** A hub, whatever may be published to it. */
export type AnyHub = Pick<Hub, Exclude<keyof Hub, 'publish' | 'publishBatch'>> & {
  publish(...given: never[]): Promise<unknown>
}

export type Expiring = 'events' | 'token'
export type Restarting = 'kept' | 'lost'

/** Time and chance as readers take them. */
export interface TestClock {
  now(): number
  random(): number
  setTimeout(callback: () => void, ms: number): unknown
  clearTimeout(timer: unknown): void
}

/** What reads in the same process. */
export interface TestPage {
  /** Resolves when the page has what it loads in parts. Called before time goes on. */
  loaded(): Promise<void>
  /** Resolves when the page has shown what it has read. False when there was nothing to show. */
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
  /** Counts whatever moves. Two looks that find the same number have found everything at rest. */
  let activity = 0
  const moved = () => {
    activity += 1
  }
  const virtual = createVirtualEnvironment({ ...(now && { now }), ...(seed && { seed }), isBusy })
  // Turns of the event loop are real, and time alone is virtual: code of the application that waits for an answer gets it,
  // also when the test does not call a method meanwhile.
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

  /** Lets turns of the event loop pass, and tells whether something moved in them. */
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

  /** Before and after, so that a trouble meets a page that has opened its streams, and a test sees what came of it. */
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
    const { endpoint } = parseTarget(request.url).below(basePath)
    // The answer to a poll may wait for the next event.
    const isAwaited = endpoint !== 'poll'
    if (isAwaited) unanswered += 1
    try {
      // What is published arrives, also during a cut: a test wants to publish then.
      return await (isReaderEndpoint(endpoint) ? network.carry(request, handler) : handler(request))
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
        for (const { connection } of serving.hub.connections()) serving.hub.disconnect(connection, expired)
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

// Turns of the event loop in which nothing may move. A chunk takes one or two from the hub to a handler of the client.
const quietTurns = 8
// How long `authorize` may take, in real time, before time goes on without its answer.
const patienceMs = 1000

const expired = { reason: 'token-expired' } as const

function everything(): Grant {
  return { subject: null, subscribe: ['*'], publish: ['*'] }
}

function credentialsOf({ headers }: Request): string {
  return `${headers.get('authorization') ?? ''}\n${headers.get('cookie') ?? ''}`
}

/**
 * The signal is set beside the constructor: a page that is simulated in Node, such as jsdom's, has signals of its own, which
 * `Request` refuses.
 */
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
  throw new RejoinError(`${name} is ${value}. Give 0 or more.`, { code: 'invalid-option' })
}
