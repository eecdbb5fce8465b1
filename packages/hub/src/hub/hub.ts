import type { ChannelIn, ChannelMessageIn, ChannelTypes, CloseReason, MessageIn } from '@rejoin/protocol'
import type { Log } from '../log/contract.ts'
import type { Subscription } from './live/subscription.ts'
import type { Observers, ReaderFacts } from './observation.ts'
import type { HubPort } from './port.ts'
import type { Message, MessageOptions } from './publish/message.ts'
import type { ChannelMessage, PublishedEvent, PublishOptions } from './publish/publishing.ts'
import type { PollAnswer, PollOptions } from './pull/poll.ts'
import type { StreamOptions } from './pull/stream.ts'
import type { ChannelListOptions, ChannelWindow } from './read/channel-window.ts'
import type { ChannelEntry } from './read/entries.ts'
import type { StreamFrame } from './read/frame-reader.ts'
import type { Start } from './read/opening.ts'
import type { Reach, Revocation } from './readers/orders.ts'
import type { Rights } from './readers/presence.ts'
import type { Totals } from './totals.ts'

export interface Hub {
  /**
   * Appends one event. Resolves with its id once the log holds the event as durably as the log promises, and this hub has it: a
   * reader that connects here afterwards gets it.
   */
  publish(channel: string, message: Message, options?: PublishOptions): Promise<PublishedEvent>
  /** Appends all events or none, next to each other and in the order given. */
  publishBatch(messages: readonly ChannelMessage[], options?: PublishOptions): Promise<PublishedEvent[]>
  /**
   * A stream inside this program: `for await (const { id, type, data } of hub.stream('orders/42', { from: cursor }))`. It has
   * all frames, the frames of the protocol included. It ends with the frame `close`, and rejects when nobody read from it for
   * too long.
   *
   * @param selectors - channels or patterns
   */
  stream(selectors: string | readonly string[], options?: StreamOptions): AsyncIterable<StreamFrame>
  /**
   * Serves a reader that cannot hold a stream open. The answer has the events that the reader missed; else it waits for the next
   * event; else it is empty after `waitMs`. A reader that polls again and again with the last cursor misses nothing.
   */
  poll(request: SubscribeRequest, options?: PollOptions): Promise<PollAnswer | ReaderRejection>
  /**
   * Ends a channel: nothing can be published to it any more. Readers get everything up to the end and then `close`,
   * `finished`, also those that come late. Ending it again changes nothing.
   */
  end(channel: string): Promise<{ readonly id: string }>
  /**
   * Deletes a channel: ends it, and removes every event that it holds. Its readers get `close`, `finished`; a reader that is
   * behind gets `sync-required`, `forced`, before that. Who comes later and can read a status gets 410. Deleting it again changes
   * nothing for readers. When the log has forgotten the channel, its name can be used again.
   */
  delete(channel: string): Promise<{ readonly id: string }>
  /** How many readers of a channel are connected to this hub, by the channel's name or by a pattern. */
  readers(channel: string): number
  /** All readers that are connected to this hub now, by stream or by poll. */
  connections(): Iterable<Connection>
  /** Ends one connection with `close`; false when it is not here. */
  disconnect(connection: string, options?: DisconnectOptions): boolean
  /** The channels the log knows, by name, some at a time. */
  channels(options?: ChannelListOptions): Promise<readonly (ChannelWindow & { readonly channel: string })[]>
  /** What this hub has done since it opened. */
  readonly totals: Readonly<Totals>
  /** How long readers are told to wait before they come back, in milliseconds, without the random part. */
  readonly retryMs: number
  /**
   * Proves that events can be appended and delivered, without publishing one: the log writes an entry of its own, and this hub has
   * received everything that the log holds. Rejects with `log-unavailable`.
   */
  probe(): Promise<void>
  /** Invalidates the events that a channel holds. Its readers, here, elsewhere and absent, are told `sync-required`, `forced`. */
  invalidate(channel: string): Promise<void>
  /**
   * Ends every stream of a subject whose rights are gone, on every hub of the log, and tells each of them (`onRevoke`). Here it
   * is done when this returns; the promise resolves when all hubs have confirmed it, or after three seconds with how many
   * have. The others follow when they have the log again.
   */
  revoke(subject: string, options?: Omit<Revocation, 'subject' | 'at'>): Promise<Reach>
  /** Ends a connection, or all of a subject, on every hub of the log; `disconnected` is how many it were here. */
  disconnectAll(who: { connection: string } | { subject: string }): Promise<Reach & { readonly disconnected: number }>
  /**
   * Asks `authorize` again for every stream that is here, spread over `withinMs`, and ends those whose rights are gone. To be
   * called when the keys or the rules have changed by which rights are given.
   */
  renewRights(options?: { withinMs?: number }): void
  /** Closes all streams, spread over a while so that readers return spread. Resolves when the last stream is closed. */
  drain(options?: DrainOptions): Promise<void>
  /** What a channel, or all channels of a pattern, hold now for readers that return. */
  window(channel: string): Promise<ChannelWindow>
  /** The newest events that a channel, or all channels of a pattern, hold: without their data, oldest first. */
  entries(selector: string, options?: EntriesOptions): Promise<readonly ChannelEntry[]>
  /** Calls `observe` for each observation of that kind until the returned function is called. */
  readonly on: Observers['on']
  /** The hub's log, for a banner or a health check, for a backup, and to change how ids are written. */
  readonly log: Pick<Log, 'name' | 'durability' | 'window' | 'meet' | 'backup' | 'budget' | 'formats' | 'switchIds'>
  /** The channel of requests that name none; undefined where such requests are rejected. */
  readonly defaultChannel: string | undefined
  /** For adapters, which connect readers and publishers; `@rejoin/hub/node` is one. */
  readonly port: HubPort
  /** Closes every stream in order, then the log. */
  close(): Promise<void>
}

/**
 * A hub that knows what may be published where: a misspelt channel or type, or wrong data, does not compile.
 *
 * @typeParam Channels - the events of each channel, such as `{ 'orders/:id': { shipped: { at: number } } }`
 */
export interface TypedHub<Channels extends ChannelTypes> extends Omit<Hub, 'publish' | 'publishBatch'> {
  /** Like `Hub.publish`. */
  publish<Name extends ChannelIn<Channels>>(
    channel: Name,
    message: MessageIn<Channels, Name, MessageOptions>,
    options?: PublishOptions,
  ): Promise<PublishedEvent>
  /** Like `Hub.publishBatch`. */
  publishBatch(
    messages: readonly ChannelMessageIn<Channels, MessageOptions>[],
    options?: PublishOptions,
  ): Promise<PublishedEvent[]>
}

export interface Connection extends ReaderFacts {
  readonly connection: string
  readonly channels: readonly string[]
  readonly mode: 'replaying' | 'live'
  /** Whether the reader is too slow, and how many bytes wait for it. */
  readonly full: boolean
  readonly pending: number
  /** When it connected, in milliseconds since 1970. */
  readonly since: number
}

export interface DisconnectOptions {
  /** @defaultValue 'admin' */
  reason?: CloseReason
  /**
   * How long the reader is told to stay away, in milliseconds.
   * @defaultValue what the hub tells everybody now
   */
  retryMs?: number
}

export interface SubscribeRequest {
  readonly subscription: Subscription
  readonly start: Start
  /** Who reads; known to the adapter only. */
  readonly reader?: ReaderFacts
  /** The reader's rights. The stream is closed when they expire, are revoked, or no longer cover the subscription. */
  readonly rights?: Rights
  /**
   * Names the client over all its connections, and counts its attempts: a higher attempt of the same subject closes the older
   * connection, which may be dead without the hub having noticed.
   */
  readonly client?: { readonly id: string; readonly attempt: number }
  /**
   * How heartbeats are sent. An `EventSource` hides comments from its page and shows it events.
   * @defaultValue 'comment'
   */
  readonly heartbeat?: 'comment' | 'event'
}

export interface ReaderRejection {
  readonly reason: string
  readonly retryMs: number
}

export interface EntriesOptions {
  /**
   * At most so many, up to 1,000.
   * @defaultValue 100
   */
  limit?: number
}

export interface DrainOptions {
  /**
   * Over how long the ends are spread, in milliseconds.
   * @defaultValue 5000
   */
  withinMs?: number
  /** @defaultValue 'drain' */
  reason?: CloseReason
  /**
   * How long before the first close readers are told to stay away for longer, in milliseconds. A reader whose connection is then
   * cut, because the process is killed for example, does not return at once. All other readers are told by `close`.
   * @defaultValue 0: not beforehand
   */
  announceMs?: number
}
