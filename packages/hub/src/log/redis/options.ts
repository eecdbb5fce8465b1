import type { IdCodec } from '@rejoin/protocol'
import type { WindowOptions } from '../contract.ts'
import type { IdempotencyOptions } from '../idempotency.ts'
import type { ChannelWindows } from '../window.ts'

export interface RedisLogOptions {
  /**
   * Under which name the log is kept. Hubs with the same one share a log. All keys start with it, in braces, so that they
   * lie in one slot of a Redis Cluster.
   * @defaultValue 'rejoin'
   */
  prefix?: string
  /**
   * What each channel keeps. The same for all hubs of a log: each applies its own.
   * @defaultValue 1,000 events, 1 hour, 16 MiB
   */
  window?: WindowOptions
  /**
   * Other windows for some channels, by their names or by patterns: `{ 'prices/*': { maxEvents: 10 } }`. The narrowest counts,
   * and what it leaves out is as in `window`. Like that, the same for all hubs.
   * @defaultValue none
   */
  windows?: ChannelWindows
  /** What is kept of all channels together, for hubs that were away and for readers of patterns. */
  feed?: FeedOptions
  /**
   * How a new log writes its ids. A log that is there already keeps its own way, and does not open with a codec that it never
   * had; `switchIds` changes it for all hubs. A log that counts has to be opened with `sequence()`.
   * @defaultValue ulid() for a new log; for another one, what it has
   */
  codec?: IdCodec
  /**
   * How long an empty channel is remembered, in milliseconds. Forgetting one costs an announced gap to readers of unknown
   * channels whose cursor is older than that, and frees about 250 bytes of Redis.
   * A channel that has ended takes events again once it is forgotten; readers from before its end are told of a gap.
   * @defaultValue 2592000000 (30 days)
   */
  forgetAfterMs?: number
  /** For how long and how many publishes a repeated `Idempotency-Key` is recognised, over all hubs. */
  idempotency?: IdempotencyOptions
  /**
   * Bytes that all channels may hold together, counted as in their windows. Beyond that the oldest events of all channels go
   * first, and a reader that needs them is told of a gap; publishing goes on. The same for all hubs of a log. Redis needs more
   * memory than that, and `feed` beside it.
   * @defaultValue no bound but the windows
   */
  maxBytes?: number
  /**
   * What has an event before its publish is answered. `server`: Redis, and the answer says what that is worth by its settings.
   * `disk`: the disk of Redis, by `appendfsync always` or by WAITAOF, which Redis has from 7.2 on; with `everysec` a publish
   * then takes up to a second. `replicated`: as many replicas as `replicas` says. A publish that does not get that far in
   * time fails with `log-unavailable`, and its event may be in the log all the same. Readers do not wait for it.
   * @defaultValue 'server'
   */
  durability?: 'server' | 'disk' | 'replicated'
  /**
   * With `durability: 'replicated'`: how many replicas have to have an event. All of them is what survives any failover; fewer
   * survive those after which one of them leads.
   * @defaultValue 1
   */
  replicas?: number
  /**
   * How long Redis may take to answer, in milliseconds. After that a publish fails with `log-unavailable`, and the
   * connection is given up.
   * @defaultValue 5000
   */
  answerWithinMs?: number
  /**
   * Whose time events are dated with. `redis`: one clock for all hubs. `hub`: that of the hub which appends, for tests with
   * a clock of their own.
   * @defaultValue 'redis'
   */
  clock?: 'redis' | 'hub'
  /**
   * Called with what is worth a look, such as a Redis that keeps nothing over a restart.
   * @defaultValue process.emitWarning
   */
  onWarning?: (message: string) => void
}

export interface FeedOptions {
  /**
   * Age in milliseconds at which an entry is let go. A hub that was away for longer sends its readers back to their
   * windows; a pattern that is read from further back costs a look at each of its channels.
   * @defaultValue 300000
   */
  maxAgeMs?: number
  /**
   * Bytes of entries kept, whatever their age. Redis needs about as much memory.
   * @defaultValue 268435456
   */
  maxBytes?: number
}
