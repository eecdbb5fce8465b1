import type { SyncRequired } from '@rejoin/protocol'
import type { StreamEvent } from './event-stream.ts'
import { createHandlerSet, type Handler, type HandlerSet, type Off } from './handler-set.ts'
import type { ReadOptions } from './options.ts'

/**
 * The user's handlers by kind: a type of event, `*` for all types, or news of the client's own.
 *
 * @param policy - has got its `check` by the time that the first event arrives
 * @param isWanted - false once a handler has closed the stream; no other handler is called after that
 */
export function createHandlers(policy: ReadPolicy, isWanted: () => boolean): Handlers {
  const { parse, schemas, keep } = policy
  const sets = new Map<string, HandlerSet<unknown>>()
  let latest: StreamEvent[] = []
  let shown: readonly StreamEvent[] | undefined
  // The name of the handler whose promise the stream waits for. Empty once the warning has been given.
  let awaited = ''

  return {
    on,
    call,
    event: (event) => read(event, deliver),
    sync: (gap) => (Array.isArray(gap.retained) ? syncRetained(gap) : sync(gap)),
    latest() {
      latest = latest.slice(-keep)
      shown ??= latest.slice()
      return shown
    },
    kinds: sets,
    warn() {
      // One warning per promise, even when several connections wait for it.
      if (awaited) warn(`Events wait for ${awaited}.`)
      awaited = ''
    },
  }

  function on(kind: string, handler: Handler<never>): Off {
    let handlers = sets.get(kind)
    if (!handlers) {
      handlers = createHandlerSet()
      sets.set(kind, handlers)
      void call(kindNews, kind)
    }
    return handlers.add(handler as Handler<unknown>)
  }

  function call(kind: string, value: unknown, advice?: string): Promise<unknown> | undefined {
    const handlers = sets.get(kind)
    if (handlers && !handlers.isEmpty()) {
      const settled = handlers.call(value, isWanted)
      if (settled) void call(promiseNews, settled)
      return settled
    }
    if (!advice) return
    warn(advice)
    // One warning is enough: from now on this kind has a handler.
    on(kind, () => undefined)
  }

  /** @returns what `take` returns, in a promise when a schema is async */
  function read(event: RawEvent, take: Take): Promise<unknown> | undefined {
    try {
      const data: unknown = parse === 'text' || event.content ? event.data : JSON.parse(event.data as string)
      awaited = `schemas.${event.type}`
      // Without the code of the check this throws, so that nothing gets through unchecked.
      if (schemas) return policy.check!(event, data, take, tellInvalid)
      event.data = data
      return take(event)
    } catch (error) {
      tellInvalid(event, error)
    }
  }

  function tellInvalid(event: RawEvent, error: unknown): void {
    void call(invalidNews, { ...event, error }, 'Bad JSON or data: set parse or add onInvalid.')
  }

  async function syncRetained(gap: SyncRequired): Promise<unknown> {
    const retained: StreamEvent[] = []
    for (const event of gap.retained!) await read(event, (it) => void retained.push(it))
    return sync({ ...gap, retained })
  }

  function sync(gap: unknown): Promise<unknown> | undefined {
    awaited = 'onSync'
    return call(syncNews, gap, 'Events are gone: add onSync.')
  }

  function deliver(event: StreamEvent): Promise<unknown> | undefined {
    const { type } = event
    if (keep >= 1) {
      // Only at twice `keep`, because each `slice` copies all events that are kept.
      if (latest.push(event) > 2 * keep) latest = latest.slice(-keep)
      shown = undefined
    }
    void call(type, event)
    if (type !== '*') void call('*', event)
    awaited = 'a loop'
    return call(offerNews, event)
  }
}

function warn(advice: string): void {
  console.warn('Rejoin:', advice)
}

// Kinds that are no types of events: a type never holds a line break (§4.3).
export const syncNews = '\ns'
export const invalidNews = '\ni'
export const duplicateNews = '\nd'
/** An event for a loop. The stream waits for its promise before it goes on. */
export const offerNews = '\no'
/** A handler has returned a promise. */
export const promiseNews = '\np'
/** A kind has got its first handler. */
export const kindNews = '\nk'

/**
 * An event whose data is still text. The data that is read from it replaces the text in the same object: a copy for
 * each event would be a tenth of the cost of a small event (bench/client).
 */
export type RawEvent = Omit<StreamEvent, 'data'> & { data: unknown }

/** Gets an event whose data has been read. */
export type Take = (event: StreamEvent) => Promise<unknown> | undefined

export interface ReadPolicy extends ReadOptions {
  keep: number
  /** Checks data by `schemas`, see `createCheck`. */
  check?: Check | undefined
}

/** @returns what `take` returns, in a promise when a schema is async */
export type Check = (
  event: RawEvent,
  data: unknown,
  take: Take,
  tellInvalid: (event: RawEvent, error: unknown) => void,
) => Promise<unknown> | undefined

export interface Handlers {
  on(kind: string, handler: Handler<never>): Off
  /**
   * @param advice - a warning when the kind has no handler; given once
   * @returns a promise for the handlers that returned one; it never rejects
   */
  call(kind: string, value: unknown, advice?: string): Promise<unknown> | undefined
  /**
   * Takes the event over, and replaces its data by the data that is read from it.
   *
   * @returns a promise that later events have to wait for
   */
  event(event: RawEvent): Promise<unknown> | undefined
  /**
   * Tells of a gap, after the data of the retained events has been read.
   *
   * @returns a promise that later events have to wait for
   */
  sync(gap: SyncRequired): Promise<unknown> | undefined
  /** The last events; the same array until another event arrives. */
  latest(): readonly StreamEvent[]
  /** The kinds that have had a handler. `kindNews` tells of each new one. */
  readonly kinds: ReadonlyMap<string, unknown>
  /** Warns of the handler whose promise the stream has waited for too long. */
  warn(): void
}
