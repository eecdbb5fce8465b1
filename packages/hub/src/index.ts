export { type Cancel, type Environment, systemEnvironment } from './environment.ts'
export type { LimitOptions } from './hub/admission.ts'
export type { ChannelListOptions, ChannelWindow } from './hub/channel-window.ts'
export type { StreamFrame } from './hub/frame-reader.ts'
export type { Grant } from './hub/grant.ts'
export {
  type Connection,
  createHub,
  type DisconnectOptions,
  type DrainOptions,
  type Hub,
  type Refusal,
  type SubscribeRequest,
} from './hub/hub.ts'
export type { HubOptions } from './hub/hub-options.ts'
export type { Incoming, IncomingBody } from './hub/incoming.ts'
export type { Message } from './hub/message.ts'
export { networkOf } from './hub/network.ts'
export type { HubObservations, ReaderFacts, ReaderObservation } from './hub/observation.ts'
export type { ReplayLimits, Start } from './hub/opening.ts'
export type { Reach, Revocation } from './hub/orders.ts'
export type { PollAnswer, PollOptions } from './hub/poll.ts'
export type { Client, Rights } from './hub/presence.ts'
export type { ChannelMessage, PublishedEvent, PublishOptions } from './hub/publishing.ts'
export type { RetryOptions } from './hub/retry.ts'
export type { EndOptions, Session } from './hub/session.ts'
export type { Shape } from './hub/shape.ts'
export type { SharedBytes, Sink } from './hub/sink.ts'
export { type Absence, recommendWindow, type SmallWindow, type WindowNeed } from './hub/sizing.ts'
export type { SnapshotHook, SnapshotOptions } from './hub/snapshot.ts'
export type { StreamOptions } from './hub/stream.ts'
export { createSubscription, type Subscription } from './hub/subscription.ts'
export type { Totals } from './hub/totals.ts'
export type { Unread, UnreadAnswer } from './hub/unread.ts'
export type {
  Appended,
  AppendOptions,
  ChannelPage,
  Gap,
  Log,
  LogEvent,
  LogSource,
  NewEvent,
  OrdersCall,
  OrdersPage,
  Page,
  PageLimit,
  Place,
  Tail,
  TailBatch,
  Window,
  WindowOptions,
} from './log/contract.ts'
export { retainLimits } from './log/contract.ts'
