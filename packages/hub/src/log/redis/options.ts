import type { IdCodec } from '@rejoin/protocol'
import { invalidOption } from '../../invalid-option.ts'
import { type Complete, withDefaults } from '../../with-defaults.ts'
import type { WindowOptions } from '../contract.ts'
import { type IdempotencyOptions, type KeyLimits, keyLimits } from '../idempotency.ts'
import { budgetOf, type ChannelWindows, createWindows, type Windows, windowOf } from '../window.ts'

export interface RedisLogOptions {
  /**
   * The name of the log. Hubs with the same prefix share a log. All keys start with the prefix in braces, so that they lie in one
   * slot of a Redis Cluster.
   * @defaultValue 'rejoin'
   */
  prefix?: string | undefined
  /**
   * What each channel keeps. Use the same for all hubs of a log, because each hub applies its own.
   * @defaultValue 1,000 events, 1 hour, 16 MiB
   */
  window?: WindowOptions | undefined
  /**
   * Other windows for some channels, by their names or by patterns: `{ 'prices/*': { maxEvents: 10 } }`. The narrowest name
   * counts. A bound that it leaves out is that of `window`. Use the same for all hubs of a log.
   * @defaultValue none
   */
  windows?: ChannelWindows | undefined
  /** Bounds of the feed: the entries of all channels together, for hubs that were disconnected and for readers of patterns. */
  feed?: FeedOptions | undefined
  /**
   * How a new log writes its ids. An existing log keeps its own codec, and does not open with a codec that it never had.
   * `switchIds` changes the codec for all hubs. A log that counts its events has to be opened with `sequence()`.
   * @defaultValue ulid() for a new log; the codec of an existing log
   */
  codec?: IdCodec | undefined
  /**
   * How long the log remembers an empty channel, in milliseconds. To forget a channel frees about 250 bytes of Redis. From then
   * on, readers of unknown channels with an older cursor are notified of a gap. A channel that has ended takes events again once it
   * is forgotten; readers from before its end are notified of a gap.
   * @defaultValue 2592000000 (30 days)
   */
  forgetAfterMs?: number | undefined
  /** How long, and for how many publishes of all hubs, the log recognises a repeated `Idempotency-Key`. */
  idempotency?: IdempotencyOptions | undefined
  /**
   * Bytes that all channels may hold together, counted as in their windows. Beyond that the oldest events of all channels go
   * first, and a reader that needs them is notified of a gap. Publishing goes on. Use the same for all hubs of a log. Redis needs
   * more memory than that, and the memory of `feed` as well.
   * @defaultValue no bound but the windows
   */
  maxBytes?: number | undefined
  /**
   * Who has an event before its publish is answered. `server`: Redis; the answer says how safe that is by the settings of Redis.
   * `disk`: the disk of Redis, by `appendfsync always` or by WAITAOF, which came with Redis 7.2; with `everysec` a publish then
   * takes up to a second. A server that confirms before it has flushed is rejected, such as Valkey 8.0 with `everysec`. `replicated`: as many replicas as `replicas` says. A publish that is not that safe in time fails with
   * `log-unavailable`, and its event may be in the log all the same. Readers get events without that wait.
   * @defaultValue 'server'
   */
  durability?: 'server' | 'disk' | 'replicated' | undefined
  /**
   * With `durability: 'replicated'`: how many replicas have to have an event. With all replicas, an event survives any failover.
   * With fewer, it survives a failover to a replica that has the event.
   * @defaultValue 1
   */
  replicas?: number | undefined
  /**
   * How long Redis may take to answer, in milliseconds. After that a publish fails with `log-unavailable`, and the log gives the
   * connection up.
   * @defaultValue 5000
   */
  answerWithinMs?: number | undefined
  /**
   * The clock that dates events. `redis`: one clock for all hubs. `hub`: the clock of the hub that appends, for tests with a
   * clock of their own.
   * @defaultValue 'redis'
   */
  clock?: 'redis' | 'hub' | undefined
  /**
   * Called with a warning for the operator, for example when Redis keeps nothing over a restart.
   * @defaultValue process.emitWarning
   */
  onWarning?: ((message: string) => void) | undefined
}

export interface FeedOptions {
  /**
   * Age in milliseconds at which the feed trims an entry. A hub that was disconnected for longer sends its readers back to
   * reading. A read of a pattern from further back costs a look at each of its channels.
   * @defaultValue 300000
   */
  maxAgeMs?: number | undefined
  /**
   * Bytes of entries that the feed keeps, whatever their age. Redis needs about as much memory.
   * @defaultValue 268435456
   */
  maxBytes?: number | undefined
}

/** The options of a log, checked, with their defaults. */
export interface RedisSettings {
  readonly prefix: string
  readonly clock: 'redis' | 'hub'
  readonly codec: IdCodec | undefined
  readonly durability: 'server' | 'disk' | 'replicated'
  readonly replicas: number
  readonly answerWithinMs: number
  readonly window: Complete<WindowOptions>
  readonly windows: Windows
  readonly feed: Complete<FeedOptions>
  readonly idempotency: KeyLimits
  readonly forgetAfterMs: number
  readonly maxBytes: number | undefined
  readonly warn: (message: string) => void
}

export function settingsOf(options: RedisLogOptions): RedisSettings {
  const { prefix = 'rejoin', clock = 'redis', codec, durability = 'server', replicas = 1 } = options
  if (!/^[^{}\s]+$/.test(prefix))
    throw invalidOption(`prefix is ${JSON.stringify(prefix)}. Use a name without braces and spaces.`)
  if (clock !== 'redis' && clock !== 'hub')
    throw invalidOption(`clock is ${JSON.stringify(clock)}. Choose 'redis' or 'hub'.`)
  if (!['server', 'disk', 'replicated'].includes(durability)) {
    throw invalidOption(`durability is ${JSON.stringify(durability)}. Choose 'server', 'disk' or 'replicated'.`)
  }
  const feed = withDefaults(options.feed, { maxAgeMs: 300_000, maxBytes: 256 * 1024 * 1024 })
  const answerWithinMs = options.answerWithinMs ?? 5000
  for (const [name, value] of Object.entries({ ...feed, answerWithinMs, replicas })) {
    if (!(value >= 1)) throw invalidOption(`${name} is ${value}. Give a number of 1 or more, or leave it out.`)
  }
  const window = windowOf(options.window, { maxEvents: 1000, maxAgeMs: 3_600_000, maxBytes: 16 * 1024 * 1024 })
  return {
    prefix,
    clock,
    codec,
    durability,
    replicas,
    answerWithinMs,
    window,
    windows: createWindows(window, options.windows),
    feed,
    idempotency: keyLimits(options.idempotency),
    forgetAfterMs: options.forgetAfterMs ?? 30 * 24 * 3_600_000,
    maxBytes: budgetOf(options.maxBytes),
    warn: options.onWarning ?? ((message) => process.emitWarning(message)),
  }
}
