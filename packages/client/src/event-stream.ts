import type { SyncRequired as Gap } from '@rejoin/protocol'
import type { Handler, Off } from './handler-set.ts'
import type { StreamState } from './stream-state.ts'

export interface StreamEvent<Type extends string = string, Data = unknown> {
  /** Unique in its log. As a cursor, it stands for everything up to this event. Empty when the server sends no ids. */
  readonly id: string
  readonly type: Type
  readonly data: Data
  /**
   * The channel of the event, when the URL asks for it with `show=channel`. Never set with 'event-source', which hides
   * it.
   */
  readonly channel?: string | undefined
  /**
   * `text` when a hub says that the event was published as text; `data` is then that text. Otherwise `data` was JSON.
   */
  readonly content?: 'text' | undefined
}

/** An event of any type in a map from types to data. Its `type` tells which. */
export type AnyEvent<Events extends object> = {
  [Type in keyof Events & string]: StreamEvent<Type, Events[Type]>
}[keyof Events & string]

/** An event whose data could not be read. It counts as handled, because the same data would arrive again. */
export interface InvalidEvent extends StreamEvent<string, string> {
  /** What `JSON.parse` threw, or the issues that a schema found. */
  readonly error: unknown
}

/** Adds handlers for types without a schema to a stream that is typed by `schemas`. Their data is not checked. */
export interface OtherTypes {
  on(type: string, handler: Handler<StreamEvent>): Off
}

/** Events are gone that a stream should have had. */
export interface SyncRequired<Events extends object = Record<string, unknown>> extends Omit<Gap, 'retained'> {
  /**
   * The newest event of each key, when the channels retain events: they make up for the events that are gone. Their
   * data is read like that of any event. An event whose data cannot be read is left out and goes to `onInvalid`.
   */
  readonly retained?: readonly (AnyEvent<Events> & { readonly channel: string; readonly key: string })[]
}

/** The state of a stream, and its last events. */
export interface StreamSnapshot<Events extends object = Record<string, unknown>> extends StreamState {
  /** The last `keep` events, oldest first; the same array until another event arrives. */
  readonly events: readonly AnyEvent<Events>[]
}

/**
 * A subscription that outlives its connections. Each event arrives once and in order, across any cut; when events are
 * gone, `onSync` is called. Add handlers in the same turn as `connect`: an event without a handler counts as seen.
 */
export interface EventStream<Events extends object = Record<string, unknown>> {
  /** The same object until something in it changes. */
  readonly state: StreamState
  /** The id up to which handlers have got everything. */
  readonly cursor: string | null
  /**
   * Calls the handler with every event of a type; `*` stands for all types. When the handler returns a promise, later
   * events do not wait for it, but the cursor that `persist` stores does. A handler that throws or rejects is reported
   * and does not stop the stream; its event counts as handled.
   */
  on<Type extends keyof Events & string>(type: Type, handler: Handler<StreamEvent<Type, Events[Type]>>): Off
  on(type: '*', handler: Handler<AnyEvent<Events>>): Off
  /**
   * Calls the handler when events are gone that this stream should have had. Reload the state that they would have
   * changed. When the handler returns a promise, later events wait for it. These events may already be part of the
   * loaded state, so apply them idempotently.
   */
  onSync(handler: Handler<SyncRequired<Events>>): Off
  /**
   * Calls the handler as soon as the current turn is over, and whenever `state`, `attempt`, `nextRetryAt`, `stale` or
   * `closeReason` changes.
   */
  onState(handler: Handler<StreamState>): Off
  /** Calls the handler with events whose data is not JSON, or does not fit the schema of their type. */
  onInvalid(handler: Handler<InvalidEvent>): Off
  /**
   * Calls the handler with events that arrived a second time and were not delivered again. Their data is the text as it
   * arrived.
   */
  onDuplicate(handler: Handler<StreamEvent<string, string>>): Off
  /** Calls the listener when `getSnapshot` has changed: once for events that arrived together. */
  subscribe(listener: () => unknown): Off
  /** The same object until something in it changes, as `useSyncExternalStore` and similar functions need it. */
  getSnapshot(): StreamSnapshot<Events>
  /**
   * Every event from now on, for `for await`. The stream is read at the pace of the loop. An event counts as handled
   * when the loop asks for the next one, or is left. Nothing is dropped, and nothing piles up in the client: the hub
   * keeps the events that wait. Handlers of the same stream get events at that pace too. The loop ends when the stream
   * closes, for whatever reason. An event that arrives while there is no loop, and that no handler handles, counts as
   * seen.
   */
  [Symbol.asyncIterator](): AsyncGenerator<AnyEvent<Events>, void>
  /**
   * Like `for await` on the stream, for a loop that a signal ends: `for await (const event of stream.iterate({ signal
   * }))`. A loop that waits ends at once, without an error. A loop that handles an event ends after that event, which
   * then counts as handled.
   */
  iterate(options?: { signal?: AbortSignal | undefined }): AsyncGenerator<AnyEvent<Events>, void>
  /**
   * Drops the connection, or the wait for one, and connects now, from the cursor. Also opens a closed stream again,
   * with all its handlers, unless `close()` or `signal` closed it.
   */
  reconnect(): void
  /**
   * Forgets the cursor, the stored one included, and connects now like a new stream: missed events are not asked for.
   * Use it when the page has just loaded all its state. Does nothing before the store of `persist` has answered.
   */
  reset(): void
  /** Closes the stream for good. No event handler is called any more, not even for events that have already arrived. */
  close(): void
}
