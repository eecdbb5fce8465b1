import { checkName, RejoinError } from '@rejoin/protocol'
import { type Environment, systemEnvironment } from '../environment.ts'
import type { LogSource } from '../log/contract.ts'
import type { LimitOptions } from './admission.ts'
import type { ReplayLimits } from './opening.ts'
import type { Revocation } from './orders.ts'
import type { RetryOptions } from './retry.ts'
import type { SnapshotOptions } from './snapshot.ts'

export interface HubOptions extends RetryOptions, ReplayLimits, SnapshotOptions {
  /** Where events are kept: `memoryLog()`. The hub opens it and closes it. */
  log: LogSource
  /**
   * The longest silence on a stream, in milliseconds. Shorter notices dead lines sooner and costs more writes; keep it
   * under half of the shortest idle timeout on the way, which is 60 s for nginx.
   * @defaultValue 25000
   */
  heartbeatMs?: number
  /**
   * Memory for encoded events of all channels together, from which returning readers are served without asking the log.
   * Less means more reads of the log, never a loss.
   * @defaultValue 16777216
   */
  hotBytes?: number
  /**
   * How long a full reader may read nothing before it is given up, in milliseconds. Its place is its own: it comes back
   * with its cursor and misses nothing.
   * @defaultValue 60000
   */
  stallTimeoutMs?: number
  /** How many readers may be here, in all and each. */
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
   * whoever returns is told `sync-required`. When the log is back, all readers of the channels concerned are told
   * `sync-required`, `forced`, because what they have is not what others have.
   * @defaultValue 'refuse'
   */
  whenDown?: 'refuse' | 'local'
  /**
   * Channels and patterns (`prices/*`) that retain their newest event, or their newest event per `key`, whatever their
   * window lets go of. A reader that has lost its place gets them with `sync-required`. At most 1,000 keys and 1 MiB in a
   * channel; a publish beyond that is refused.
   * @defaultValue none
   */
  retain?: readonly string[]
  /**
   * Called when rights are taken back by `hub.revoke`, on this hub or on another one that shares its log, and at the start for
   * those that are still in force: `authorize` should refuse them from then on. The streams are ended by the hub.
   * @defaultValue none: the streams end, and `authorize` is asked when they return
   */
  onRevoke?: (revocation: Revocation) => void
  /** Time, chance and scheduling; for tests. */
  environment?: Environment
}

/** The options that have a default, and the rest; each checked. */
export function checkedOptions(options: HubOptions) {
  const { retryMs, retries = {}, snapshotTimeoutMs, maxReplayEvents, maxReplayAgeMs, limits } = options
  const unlimited = Number.POSITIVE_INFINITY
  const replay = { maxReplayEvents: maxReplayEvents ?? unlimited, maxReplayAgeMs: maxReplayAgeMs ?? unlimited }
  const maxTailSilenceMs = options.maxTailSilenceMs ?? 10_000
  for (const [name, limit] of Object.entries({ ...limits, ...replay, maxTailSilenceMs })) positiveLimit(name, limit)
  if (typeof retryMs === 'number') positive('retryMs', retryMs)
  for (const [name, ms] of Object.entries(retries)) {
    checkName(name)
    if (typeof ms === 'number') positive(`retries["${name}"]`, ms)
  }
  if (snapshotTimeoutMs !== undefined) positive('snapshotTimeoutMs', snapshotTimeoutMs)
  return {
    ...{ ...options, ...replay, maxTailSilenceMs },
    environment: options.environment ?? systemEnvironment,
    heartbeatMs: positive('heartbeatMs', options.heartbeatMs ?? 25_000),
    stallTimeoutMs: positive('stallTimeoutMs', options.stallTimeoutMs ?? 60_000),
    maxAnswerBytes: limits?.maxAnswerBytes ?? 32 * 1024 * 1024,
    maxIncomingBytes: limits?.maxIncomingBytes ?? 32 * 1024 * 1024,
    hotBytes: positive('hotBytes', options.hotBytes ?? 16 * 1024 * 1024),
    retain: (options.retain ?? []).map(checkName),
  }
}

function positiveLimit(name: string, value: number): void {
  if (value > 0) return
  throw new RejoinError(`${name} is ${value}. Give a number above 0, or leave it out.`, { code: 'invalid-option' })
}

function positive(name: string, value: number): number {
  if (value > 0 && value < 2 ** 31) return value
  throw new RejoinError(`${name} is ${value}. Give a number above 0 and below 2147483648.`, { code: 'invalid-option' })
}
