import type { SyncRequired as Gap } from '@rejoin/protocol'
import type { Handler, Off } from './handler-set.ts'
import type { StreamState } from './stream-state.ts'

/** An event as a handler gets it. */
export interface StreamEvent<Type extends string = string, Data = unknown> {
  /** Unique in its log, and a cursor: everything up to this event. Empty when the server numbers nothing. */
  readonly id: string
  readonly type: Type
  readonly data: Data
  /** Where it was published, when the URL asks for it with `show=channel`. Not with 'event-source', which hides it. */
  readonly channel?: string | undefined
  /** `text` when a hub says that the event was published as text: `data` is then that text. Otherwise `data` was JSON. */
  readonly content?: 'text' | undefined
}

/** An event of any type of a map from types to data, told apart by its `type`. */
export type AnyEvent<Events extends object> = {
  [Type in keyof Events & string]: StreamEvent<Type, Events[Type]>
}[keyof Events & string]

/** An event whose data could not be read. It counts as handled: asked for again, it would be the same. */
export interface InvalidEvent extends StreamEvent<string, string> {
  /** What `JSON.parse` threw, or the issues that a schema found. */
  readonly error: unknown
}

/** What a stream whose types come from `schemas` takes besides: types without a schema, their data as it came. */
export interface OtherTypes {
  on(type: string, handler: Handler<StreamEvent>): Off
}

/** Events are gone that a stream should have had. */
export interface SyncRequired<Events extends object = Record<string, unknown>> extends Omit<Gap, 'retained'> {
  /**
   * The newest event of each key, when the channels retain them: what was gone is made good by these. Their data is read
   * like that of any event, and what cannot be read is left out and goes to `onInvalid`.
   */
  readonly retained?: readonly (AnyEvent<Events> & { readonly channel: string; readonly key: string })[]
}

/** What a stream shows of itself, with its last events. */
export interface StreamSnapshot<Events extends object = Record<string, unknown>> extends StreamState {
  /** As many as `keep` says, oldest first; the same array until there is another. */
  readonly events: readonly AnyEvent<Events>[]
}

/**
 * A subscription that outlives its connections: each event once, in order, across any cut; or `onSync`, when something
 * is gone. Add handlers in the same turn as `connect`: an event that nobody handles is counted as seen.
 */
export interface EventStream<Events extends object = Record<string, unknown>> {
  /** The same object until something in it changes. */
  readonly state: StreamState
  /** The id up to which handlers have been given everything. */
  readonly cursor: string | null
  /**
   * Calls the handler with every event of a type, `*` for all types. Later events do not wait for a promise that it
   * returns, but the cursor that `persist` stores does. A handler that throws or rejects is reported and does not
   * stop the stream; its event counts as handled.
   */
  on<Type extends keyof Events & string>(type: Type, handler: Handler<StreamEvent<Type, Events[Type]>>): Off
  on(type: '*', handler: Handler<AnyEvent<Events>>): Off
  /**
   * Calls the handler when events are gone that this stream should have had: reload what they would have changed. When
   * it returns a promise, later events wait for it. They may already be part of what was loaded, so apply them
   * idempotently.
   */
  onSync(handler: Handler<SyncRequired<Events>>): Off
  /**
   * Calls the handler as soon as the current turn is over, and whenever `state`, `attempt`, `nextRetryAt`, `stale` or
   * `closeReason` changes.
   */
  onState(handler: Handler<StreamState>): Off
  /** Calls the handler with events whose data is not JSON, or not what the schema of their type asks for. */
  onInvalid(handler: Handler<InvalidEvent>): Off
  /** Calls the handler with events that arrived again and were not delivered again, their data unread. */
  onDuplicate(handler: Handler<StreamEvent<string, string>>): Off
  /** Calls the listener when `getSnapshot` has something new: once for events that arrived together. */
  subscribe(listener: () => unknown): Off
  /** The same object until something in it changes. Made for `useSyncExternalStore` and its like. */
  getSnapshot(): StreamSnapshot<Events>
  /**
   * Every event from now on, for `for await`. The stream is read at the pace of the loop, and an event counts as handled
   * when the loop asks for the next one, or is left: nothing is dropped, and nothing piles up here, as the hub keeps what
   * waits. Handlers of the same stream go at that pace too. The loop ends when the stream is closed, for whichever
   * reason. An event that arrives while there is no loop, and that no handler handles, counts as seen.
   */
  [Symbol.asyncIterator](): AsyncGenerator<AnyEvent<Events>, void>
  /**
   * The same, for a loop that a signal ends: `for await (const event of stream.iterate({ signal }))`. A loop that waits
   * ends at once, without an error. A loop that handles an event ends when it is done with it, and the event counts then.
   */
  iterate(options?: { signal?: AbortSignal | undefined }): AsyncGenerator<AnyEvent<Events>, void>
  /**
   * Drops the connection, or the wait for it, and connects now, from the cursor. Opens a closed stream again, with all its
   * handlers, unless `close()` or `signal` closed it.
   */
  reconnect(): void
  /**
   * Forgets the cursor, the stored one included, and connects now, as a stream that has never been open: nothing that was
   * missed is asked for. For a page that has just loaded all its state by itself. Does nothing before the store of `persist` has
   * answered.
   */
  reset(): void
  /** Closes the stream for good. No handler for events is called after it, not even for those that have arrived. */
  close(): void
}
