import { type ChannelSchemas, checkChannel, checkSelector, longestTimerMs, RejoinError } from '@rejoin/protocol'
import { type Environment, systemEnvironment } from '../environment.ts'
import type { LogSource } from '../log/contract.ts'
import type { ReplayLimits } from './read/opening.ts'
import type { SnapshotOptions } from './read/snapshot.ts'
import type { LimitOptions } from './readers/admission.ts'
import type { Revocation } from './readers/orders.ts'
import type { RetryOptions } from './readers/retry.ts'

export interface HubOptions extends RetryOptions, ReplayLimits, SnapshotOptions {
  /** Where events are kept: `memoryLog()`. The hub opens it and closes it. */
  log: LogSource
  /**
   * The longest silence on a stream, in milliseconds. Shorter notices dead connections sooner and costs more writes; keep it
   * under half of the shortest idle timeout on the way, which is 60 s for nginx.
   * @defaultValue 25000
   */
  heartbeatMs?: number
  /**
   * The channel of requests that name none: `GET /events`, and `POST /publish` of a body without `channel`, which is then the
   * data of the event.
   * @defaultValue none: such requests are rejected
   */
  defaultChannel?: string
  /**
   * Memory for encoded events of all channels together, from which returning readers are served without asking the log.
   * Less means more reads of the log, never a loss.
   * @defaultValue 16777216
   */
  hotBytes?: number
  /**
   * How long a full reader may read nothing before it is given up, in milliseconds. Its position is its own: it comes back
   * with its cursor and misses nothing.
   * @defaultValue 60000
   */
  stallTimeoutMs?: number
  /** How many readers may be connected, and how much memory they may take. */
  limits?: LimitOptions
  /**
   * For how long the hub may hear nothing from a log that it reaches over a network, in milliseconds. After that its readers
   * are sent away with `log-unavailable`, spread over five seconds: another node may hear it. `Infinity` keeps them.
   * @defaultValue 10000
   */
  maxTailSilenceMs?: number
  /**
   * What becomes of publishes while the log is away. `refuse` rejects them with `log-unavailable`. `local` hands them to the
   * readers of this hub and keeps them nowhere. Its readers then stay for as long as the log is away, and new ones are let in;
   * a reader that returns is told `sync-required`. When the log is back, all readers of the channels concerned are told
   * `sync-required`, `forced`, because what they have is not what others have.
   * @defaultValue 'refuse'
   */
  whenDown?: 'refuse' | 'local'
  /**
   * Channels and patterns (`prices/*`) that retain their newest event, or their newest event per `key`, whatever their
   * window lets go of. A reader that has lost its position gets them with `sync-required`. At most 1,000 keys and 1 MiB in a
   * channel; a publish beyond that is rejected.
   * @defaultValue none
   */
  retain?: readonly string[]
  /**
   * Schemas for the events of channels, by name (`news`, `orders/:id`) and type, of any library that follows Standard Schema.
   * A publish whose type or data does not fit is rejected, also over HTTP, and `hub.publish` is typed by them. A channel that
   * is not named takes anything.
   * @defaultValue none: nothing is checked
   */
  schemas?: ChannelSchemas
  /**
   * Channels and patterns (`chats/*`) that a reader without a cursor reads from their beginning: answers of a model, jobs, whatever
   * starts, goes on and ends. A reader of several names starts there when all of them are declared; `?replay=0` starts at the head
   * all the same. A reader whose beginning is gone is told `sync-required`.
   * @defaultValue none: such a reader starts at the head, unless all its channels have ended
   */
  fromStart?: readonly string[]
  /**
   * Called when rights are taken back by `hub.revoke`, on this hub or on another one that shares its log, and at the start for
   * those that are still in force: `authorize` should reject them from then on. The streams are ended by the hub.
   * @defaultValue none: the streams end, and `authorize` is asked when they return
   */
  onRevoke?: (revocation: Revocation) => void
  /** Time, chance and scheduling; for tests. */
  environment?: Environment
}

/** All options, each checked, with their defaults. */
export function checkedOptions(options: HubOptions) {
  checkNames(options)
  const { retryMs, retries = {}, snapshotTimeoutMs, maxReplayEvents, maxReplayAgeMs, limits } = options
  const unlimited = Number.POSITIVE_INFINITY
  const replay = { maxReplayEvents: maxReplayEvents ?? unlimited, maxReplayAgeMs: maxReplayAgeMs ?? unlimited }
  const maxTailSilenceMs = options.maxTailSilenceMs ?? 10_000
  for (const [name, limit] of Object.entries({ ...limits, ...replay, maxTailSilenceMs })) positiveLimit(name, limit)
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
    hotBytes: positive('hotBytes', options.hotBytes ?? 16 * 1024 * 1024),
    retain: selectors('retain', options.retain),
    fromStart: selectors('fromStart', options.fromStart),
    defaultChannel: options.defaultChannel === undefined ? undefined : checkChannel(options.defaultChannel),
  }
}

/** An option that nobody reads would be missed on the day it is needed. */
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
  if (whenDown !== undefined && whenDown !== 'refuse' && whenDown !== 'local') {
    throw invalidOption(`whenDown is ${JSON.stringify(whenDown)}. Choose 'refuse' or 'local'.`)
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

function positiveLimit(name: string, value: number): void {
  if (value > 0) return
  throw invalidOption(`${name} is ${value}. Give a number above 0, or leave it out.`)
}

function positive(name: string, value: number): number {
  if (value > 0 && value <= longestTimerMs) return value
  throw invalidOption(`${name} is ${value}. Give a number above 0 and at most ${longestTimerMs}.`)
}

function invalidOption(message: string): RejoinError {
  return new RejoinError(message, { code: 'invalid-option' })
}
