export type { Cancel, Environment } from './environment.ts'
export { createHub, type Hub, type HubOptions, type PublishedEvent, type SubscribeRequest } from './hub/hub.ts'
export type { Message } from './hub/message.ts'
export type { HubObservations } from './hub/observation.ts'
export type { Session } from './hub/session.ts'
export type { SharedBytes, Sink } from './hub/sink.ts'
export type { SnapshotHook } from './hub/snapshot.ts'
export { createSubscription, type Subscription } from './hub/subscription.ts'
export type {
  Gap,
  Log,
  LogEvent,
  LogSource,
  NewEvent,
  Page,
  Tail,
  TailBatch,
  Window,
  WindowOptions,
} from './log/contract.ts'
