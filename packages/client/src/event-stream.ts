import type { SyncRequired } from '@rejoin/protocol'
import type { Handler, Off } from './handler-set.ts'
import type { StreamState } from './stream-state.ts'

/** An event as a handler gets it. */
export interface StreamEvent<Type extends string = string, Data = unknown> {
  /** Unique in its log, and a cursor: everything up to this event. Empty when the server numbers nothing. */
  readonly id: string
  readonly type: Type
  readonly data: Data
}

/** An event of any type of a map from types to data, told apart by its `type`. */
export type AnyEvent<Events extends object> = {
  [Type in keyof Events & string]: StreamEvent<Type, Events[Type]>
}[keyof Events & string]

/** An event whose data could not be read. It counts as handled: asked for again, it would be the same. */
export interface InvalidEvent extends StreamEvent<string, string> {
  readonly error: unknown
}

/**
 * A subscription that outlives its connections: each event once, in order, across any cut; or `onSync`, when something
 * is gone. Add handlers in the same turn as `connect`: an event that nobody handles is counted as seen.
 */
export interface EventStream<Events extends object = Record<string, unknown>> {
  /** The same object until something in it changes. */
  readonly state: StreamState
  /** The id up to which everything has been handled. */
  readonly cursor: string | null
  /**
   * Calls the handler with every event of a type, `*` for all types. A handler that throws is reported and does not stop
   * the stream; its event counts as handled.
   */
  on<Type extends keyof Events & string>(type: Type, handler: Handler<StreamEvent<Type, Events[Type]>>): Off
  on(type: '*', handler: Handler<AnyEvent<Events>>): Off
  /**
   * Calls the handler when events are gone that this stream should have had: reload what they would have changed. When
   * it returns a promise, later events wait for it. They may already be part of what was loaded, so apply them
   * idempotently.
   */
  onSync(handler: Handler<SyncRequired>): Off
  /** Calls the handler at once, and whenever `state`, `attempt`, `nextRetryAt` or `closeReason` changes. */
  onState(handler: Handler<StreamState>): Off
  /** Calls the handler with events whose data is not JSON. */
  onInvalid(handler: Handler<InvalidEvent>): Off
  /** Drops the connection, or the wait for it, and connects now, from the same place. Does nothing once closed. */
  reconnect(): void
  /** Ends the stream for good. No handler for events is called after it, not even for those that have arrived. */
  close(): void
}
