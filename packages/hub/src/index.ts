export {
  type ChannelIn,
  type ChannelSchemas,
  type ChannelsOf,
  type ErrorCode,
  type EventsIn,
  type HlcOptions,
  hlc,
  type IdCodec,
  type IdFormat,
  RejoinError,
  type SnowflakeOptions,
  sequence,
  snowflake,
  ulid,
  uuidv7,
} from '@rejoin/protocol'
export { type Cancel, type Environment, systemEnvironment } from './environment.ts'
export type { HubSource } from './http/hub-source.ts'
export { createHub } from './hub/create-hub.ts'
export type {
  Connection,
  DisconnectOptions,
  DrainOptions,
  EntriesOptions,
  Hub,
  TypedHub,
} from './hub/hub.ts'
export type { HubOptions } from './hub/hub-options.ts'
export type { Shape } from './hub/live/shape.ts'
export type { SharedBytes, Sink } from './hub/live/sink.ts'
export { createSubscription, type Subscription } from './hub/live/subscription.ts'
export type {
  HubObservations,
  ReaderFacts,
  ReaderObservation,
  RejectedReader,
  SmallWindow,
  Totals,
  UnfinishedReplay,
  WindowNeed,
} from './hub/observation.ts'
export type { AdmitOptions, HubPort, Verdict } from './hub/port.ts'
export type { Incoming, IncomingBody } from './hub/publish/incoming.ts'
export type { Message } from './hub/publish/message.ts'
export type { ChannelMessage, PublishedEvent, PublishOptions } from './hub/publish/publishing.ts'
export type { PollAnswer, PollOptions } from './hub/pull/poll.ts'
export type { PullOptions, StreamOptions } from './hub/pull/stream.ts'
export type { Unread, UnreadAnswer } from './hub/pull/unread.ts'
export type { ChannelListOptions, ChannelWindow } from './hub/read/channel-window.ts'
export type { ChannelEntry } from './hub/read/entries.ts'
export type { StreamFrame } from './hub/read/frame-reader.ts'
export type { ReplayLimits, Start } from './hub/read/opening.ts'
export type { SnapshotCall, SnapshotHook, SnapshotOptions, SubscribedChannels } from './hub/read/snapshot.ts'
export type { LimitOptions } from './hub/readers/admission.ts'
export type { Client, Grant, Rights } from './hub/readers/grant.ts'
export { networkOf } from './hub/readers/network.ts'
export type { Reach, Revocation } from './hub/readers/orders.ts'
export type { RetryOptions } from './hub/readers/retry.ts'
export type { Admitted, ConnectedReader, ReaderRejection, SubscribeRequest } from './hub/readers/subscribe-request.ts'
export { type Absence, recommendWindow } from './hub/sizing.ts'
export type {
  Appended,
  AppendOptions,
  Backup,
  BackupOptions,
  BackupProgress,
  ChannelPage,
  Gap,
  IdSwitch,
  IdSwitchOptions,
  Log,
  LogBudget,
  LogEvent,
  LogSource,
  NewEvent,
  NewIdFormat,
  OrdersCall,
  OrdersPage,
  Page,
  PageLimit,
  PutIfAbsent,
  Stamp,
  Tail,
  TailBatch,
  Window,
  WindowOptions,
} from './log/contract.ts'
export { retainLimits } from './log/contract.ts'
export type { Complete } from './with-defaults.ts'
