import { type ChannelSchemas, checkChannel, checkSelector, longestTimerMs } from '@rejoin/protocol'
import { type Environment, systemEnvironment } from '../environment.ts'
import { invalidOption } from '../invalid-option.ts'
import type { LogSource } from '../log/contract.ts'
import type { ReplayLimits } from './read/opening.ts'
import type { SnapshotOptions } from './read/snapshot.ts'
import type { LimitOptions } from './readers/admission.ts'
import type { Revocation } from './readers/orders.ts'
import type { RetryOptions } from './readers/retry.ts'

export interface HubOptions extends RetryOptions, ReplayLimits, SnapshotOptions {
  /** Where events are kept, such as `memoryLog()`. The hub opens the log and closes it. */
  log: LogSource
  /**
   * The longest silence on a stream, in milliseconds. With a shorter time, dead connections are noticed sooner, at the cost of
   * more writes. Keep it under half of the shortest idle timeout on the way, which is 60 s for nginx.
   * @defaultValue 25000
   */
  heartbeatMs?: number | undefined
  /**
   * The channel of requests that name none: `GET /events`, and `POST /publish` with a body without `channel`. The body is then
   * the data of the event.
   * @defaultValue none: such requests are rejected
   */
  defaultChannel?: string | undefined
  /**
   * Memory for encoded events of all channels together, in bytes. Returning readers are served from it without a read of the log.
   * With less memory, the hub reads the log more often. No event is lost.
   * @defaultValue 16777216
   */
  hotBytes?: number | undefined
  /**
   * How long a full reader may read nothing before its stream is destroyed, in milliseconds. The reader returns with its cursor
   * and misses nothing.
   * @defaultValue 60000
   */
  stallTimeoutMs?: number | undefined
  /** How many readers may be connected, and how much memory they may take. */
  limits?: LimitOptions | undefined
  /**
   * How long a log on the network may be silent, in milliseconds. After that, all streams are closed with `log-unavailable`,
   * spread over five seconds, because another hub may still hear the log. `Infinity` keeps the streams.
   * @defaultValue 10000
   */
  maxTailSilenceMs?: number | undefined
  /**
   * What becomes of publishes while the log is away. `reject` rejects them with `log-unavailable`. `local` sends the events to
   * the readers of this hub and keeps them nowhere. Then readers stay connected while the log is away, and new readers are let
   * in. A reader that returns is told `sync-required`. When the log is back, all readers of these channels are told
   * `sync-required`, `forced`, because readers of different hubs have different events.
   * @defaultValue 'reject'
   */
  whenDown?: 'reject' | 'local' | undefined
  /**
   * Channels and patterns (`prices/*`) that retain their newest event, or their newest event per `key`, even when their window
   * has let go of it. A reader that has lost its position gets these events with `sync-required`. A channel retains at most 1,000
   * keys and 1 MiB; a publish beyond that is rejected.
   * @defaultValue none
   */
  retain?: readonly string[] | undefined
  /**
   * Schemas for the events of channels, by name (`news`, `orders/:id`) and type, of any library that follows Standard Schema. A
   * publish whose type or data does not fit is rejected, also over HTTP, and `hub.publish` is typed by the schemas. Channels
   * without a schema take anything.
   * @defaultValue none: nothing is checked
   */
  schemas?: ChannelSchemas | undefined
  /**
   * Channels and patterns (`chats/*`) that a reader without a cursor reads from their beginning: answers of a model, jobs,
   * anything with a start and an end. A reader of several names starts at the beginning only when all of them are listed here.
   * `?replay=0` starts at the head anyway. A reader is told `sync-required` when the beginning is gone.
   * @defaultValue none: such a reader starts at the head, unless all its channels have ended
   */
  fromStart?: readonly string[] | undefined
  /**
   * Called when `hub.revoke` takes rights back, on this hub or on another hub of the same log. At the start, it is called for
   * each revocation that is still in force. From then on, `authorize` should reject these rights. The hub itself closes the
   * streams.
   * @defaultValue none: the streams end, and `authorize` is asked when they return
   */
  onRevoke?: ((revocation: Revocation) => void) | undefined
  /** The clock, the timers and the chance; for tests. */
  environment?: Environment | undefined
}

/** All options, each checked, with their defaults. */
export function checkedOptions(options: HubOptions) {
  checkNames(options)
  const { retryMs, retries = {}, snapshotTimeoutMs, maxReplayEvents, maxReplayAgeMs, limits } = options
  const unlimited = Number.POSITIVE_INFINITY
  const replay = { maxReplayEvents: maxReplayEvents ?? unlimited, maxReplayAgeMs: maxReplayAgeMs ?? unlimited }
  const maxTailSilenceMs = options.maxTailSilenceMs ?? 10_000
  for (const [name, limit] of Object.entries({ ...limits, ...replay, maxTailSilenceMs })) {
    if (limit !== undefined) positiveLimit(name, limit)
  }
  if (typeof retryMs === 'number') positive('retryMs', retryMs)
  for (const [name, ms] of Object.entries(retries)) {
    checkSelector(name)
    if (typeof ms === 'number') positive(`retries["${name}"]`, ms)
  }
  if (snapshotTimeoutMs !== undefined) positive('snapshotTimeoutMs', snapshotTimeoutMs)
  return {
    ...options,
    ...replay,
    maxTailSilenceMs,
    environment: options.environment ?? systemEnvironment,
    heartbeatMs: positive('heartbeatMs', options.heartbeatMs ?? 25_000),
    stallTimeoutMs: positive('stallTimeoutMs', options.stallTimeoutMs ?? 60_000),
    maxRapidReturns: limits?.maxRapidReturns ?? 10,
    maxStreamBytes: limits?.maxStreamBytes ?? 32 * 1024 * 1024,
    maxAnswerBytes: limits?.maxAnswerBytes ?? 32 * 1024 * 1024,
    maxIncomingBytes: limits?.maxIncomingBytes ?? 32 * 1024 * 1024,
    hotBytes: positiveLimit('hotBytes', options.hotBytes ?? 16 * 1024 * 1024),
    retain: selectors('retain', options.retain),
    fromStart: selectors('fromStart', options.fromStart),
    defaultChannel: options.defaultChannel === undefined ? undefined : checkChannel(options.defaultChannel),
  }
}

/** Rejects unknown names: a misspelt option would have no effect, and nobody would notice. */
function checkNames(options: HubOptions): void {
  const { log, limits, whenDown } = Object(options) as Partial<HubOptions>
  if (typeof log?.open !== 'function') {
    throw invalidOption(
      'createHub needs a log. Give one of memoryLog(), lmdbLog(folder) or redisLog(client): createHub({ log: memoryLog() }).',
    )
  }
  const given: [string, object | undefined, Record<string, true>][] = [
    ['', options, names],
    ['limits.', limits, limitNames],
  ]
  for (const [where, object, known] of given) {
    for (const name in object) {
      if (Object.hasOwn(known, name)) continue
      throw invalidOption(`${where}${name} is no option of a hub. Choose from ${Object.keys(known).join(', ')}.`)
    }
  }
  if (whenDown !== undefined && whenDown !== 'reject' && whenDown !== 'local') {
    throw invalidOption(`whenDown is ${JSON.stringify(whenDown)}. Choose 'reject' or 'local'.`)
  }
}

const names: Record<keyof HubOptions, true> = {
  log: true,
  heartbeatMs: true,
  retryMs: true,
  retries: true,
  retain: true,
  fromStart: true,
  schemas: true,
  defaultChannel: true,
  hotBytes: true,
  stallTimeoutMs: true,
  limits: true,
  maxTailSilenceMs: true,
  whenDown: true,
  maxReplayEvents: true,
  maxReplayAgeMs: true,
  snapshot: true,
  snapshotUrl: true,
  snapshotKey: true,
  snapshotTimeoutMs: true,
  onRevoke: true,
  environment: true,
}

const limitNames: Record<keyof LimitOptions, true> = {
  maxConnections: true,
  maxPerIp: true,
  maxPerSubject: true,
  maxRapidReturns: true,
  maxOpensPer10s: true,
  maxStreamBytes: true,
  maxAnswerBytes: true,
  maxIncomingBytes: true,
}

function selectors(name: string, given: readonly string[] = []): string[] {
  if (!Array.isArray(given)) {
    throw invalidOption(`${name} is ${JSON.stringify(given)}. Give a list of channels and patterns: ['prices/*'].`)
  }
  return given.map(checkSelector)
}

function positiveLimit(name: string, value: number): number {
  if (value > 0) return value
  throw invalidOption(`${name} is ${value}. Give a number above 0, or leave it out.`)
}

function positive(name: string, value: number): number {
  if (value > 0 && value <= longestTimerMs) return value
  throw invalidOption(`${name} is ${value}. Give a number above 0 and at most ${longestTimerMs}.`)
}
