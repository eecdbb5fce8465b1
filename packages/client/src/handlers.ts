import type { SchemaResult, SyncRequired } from '@rejoin/protocol'
import type { StreamEvent } from './event-stream.ts'
import { createHandlerSet, type Handler, type HandlerSet, isPromise, type Off } from './handler-set.ts'
import type { ReadOptions } from './options.ts'

/**
 * What the user wants to be told, by kind: a type of event, `*` for all of them, or news of our own.
 *
 * @param isWanted - false once a handler has closed the stream, after which no other is called
 */
export function createHandlers(
  { parse, schemas, keep }: ReadOptions & { keep: number },
  isWanted: () => boolean,
): Handlers {
  const sets = new Map<string, HandlerSet<unknown>>()
  let latest: StreamEvent[] = []
  let shown: readonly StreamEvent[] | undefined
  // Whose promise the stream waits for, if it waits. Empty once that was warned of.
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
      // Once for a promise, on however many connections it is waited for.
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
    // Once is enough: from now on somebody listens.
    on(kind, () => undefined)
  }

  /** @returns what `take` does, and a promise of it when a schema has to be waited for */
  function read(event: RawEvent, take: Take): Promise<unknown> | undefined {
    try {
      const data: unknown = parse === 'text' || event.content ? event.data : JSON.parse(event.data as string)
      const result = schemas?.[event.type]?.['~standard']?.validate(data) ?? { value: data }
      if (!isPromise(result)) return accept(event, result, take)
      awaited = `schemas.${event.type}`
      return Promise.resolve(result)
        .then((it) => accept(event, it, take))
        .catch((error) => refuse(event, error))
    } catch (error) {
      refuse(event, error)
    }
  }

  function accept(event: RawEvent, result: SchemaResult<unknown>, take: Take): Promise<unknown> | undefined {
    if (result.issues) throw result.issues
    event.data = result.value
    return take(event)
  }

  function refuse(event: RawEvent, error: unknown): void {
    void call(invalidNews, { ...event, error }, 'Bad data: is it JSON? Set parse, or add onInvalid.')
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
      // Now and then, as each time moves all of them.
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

// Kinds beside the types of events, of which none holds a line break (§4.3).
export const syncNews = '\ns'
export const invalidNews = '\ni'
export const duplicateNews = '\nd'
/** An event for a handler for which the stream waits before it goes on. */
export const offerNews = '\no'
/** The promise of a handler. */
export const promiseNews = '\np'
/** A kind that has its first handler. */
export const kindNews = '\nk'

/**
 * An event whose data is text, to be replaced by what is read from it. Not in a copy: one for each event would be a tenth of
 * what a small event costs (bench/client).
 */
export type RawEvent = Omit<StreamEvent, 'data'> & { data: unknown }

type Take = (event: StreamEvent) => Promise<unknown> | undefined

export interface Handlers {
  on(kind: string, handler: Handler<never>): Off
  /**
   * @param advice - for whoever has no handler, once
   * @returns a promise for the handlers that returned one. It never rejects.
   */
  call(kind: string, value: unknown, advice?: string): Promise<unknown> | undefined
  /**
   * Takes the event over: its data is replaced by what is read from it.
   *
   * @returns what later events have to wait for
   */
  event(event: RawEvent): Promise<unknown> | undefined
  /** Tells of a gap, with the data of what is retained read. Returns what later events have to wait for. */
  sync(gap: SyncRequired): Promise<unknown> | undefined
  /** The last events, the same array until there is another. */
  latest(): readonly StreamEvent[]
  /** Those that have had a handler; of further ones `kindNews` tells. */
  readonly kinds: ReadonlyMap<string, unknown>
  /** Names the handler whose promise the stream has waited for too long. */
  warn(): void
}
