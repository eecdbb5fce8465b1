export {
  type ChannelIn,
  type ChannelSchemas,
  type ChannelsOf,
  type ErrorCode,
  type EventsIn,
  type EventsOf,
  type GapReason,
  RejoinError,
  type Schema,
  type SchemaResult,
  type Schemas,
} from '@rejoin/protocol'
export type { RetryWait } from './backoff.ts'
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
export { connect } from './stream.ts'
export type { CloseReason, StreamState, TransportName } from './stream-state.ts'
