export type { GapReason } from '@rejoin/protocol'
export type { Backoff, RetryWait } from './backoff.ts'
export type { Clock } from './clock.ts'
export type {
  AnyEvent,
  EventStream,
  InvalidEvent,
  OtherTypes,
  StreamEvent,
  StreamSnapshot,
  SyncRequired,
} from './event-stream.ts'
export type { Handler, Off } from './handler-set.ts'
export type { ConnectOptions, ReadOptions } from './options.ts'
export type { CursorStore } from './persistence.ts'
export type { ReconnectRecord, ReconnectReports } from './reconnect-reports.ts'
export type { Attempt, RequestOptions, Token } from './request.ts'
export type { EventsOf, Schema, SchemaResult, Schemas } from './schema.ts'
export { connect } from './stream.ts'
export type { CloseReason, StreamState, TransportName } from './stream-state.ts'
