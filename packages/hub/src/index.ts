export {
  type ChannelIn,
  type ChannelSchemas,
  type ChannelsOf,
  type ErrorCode,
  type EventsIn,
  hlc,
  type IdCodec,
  type IdFormat,
  RejoinError,
  sequence,
  snowflake,
  ulid,
  uuidv7,
} from '@rejoin/protocol'
export { type Environment, systemEnvironment } from './environment.ts'
export type { HubSource } from './http/hub-source.ts'
export { createHub } from './hub/create-hub.ts'
export type { Connection, DrainOptions, Hub, HubAdmin, TypedHub } from './hub/hub.ts'
export type { HubOptions } from './hub/hub-options.ts'
export type { HubObservations } from './hub/observation.ts'
export type { Message } from './hub/publish/message.ts'
export type { ChannelMessage, PublishedEvent, PublishOptions } from './hub/publish/publishing.ts'
export type { StreamOptions } from './hub/pull/stream.ts'
export type { ChannelWindow } from './hub/read/channel-window.ts'
export type { ChannelEntry } from './hub/read/entries.ts'
export type { StreamFrame } from './hub/read/frame-reader.ts'
export type { SnapshotCall, SnapshotHook, SnapshotOptions, SubscribedChannels } from './hub/read/snapshot.ts'
export type { LimitOptions } from './hub/readers/admission.ts'
export type { Grant } from './hub/readers/grant.ts'
export type { Reach, Revocation } from './hub/readers/orders.ts'
export type { RetryOptions } from './hub/readers/retry.ts'
export { recommendWindow } from './hub/sizing.ts'
export type { LogSource, WindowOptions } from './log/contract.ts'
