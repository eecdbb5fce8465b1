import type { ChannelIn, ChannelMessageIn, ChannelTypes, CloseReason, MessageIn } from '@rejoin/protocol'
import type { Log } from '../log/contract.ts'
import type { Observers, ReaderFacts, Totals } from './observation.ts'
import type { HubPort } from './port.ts'
import type { Message, MessageOptions } from './publish/message.ts'
import type { ChannelMessage, PublishedEvent, PublishOptions } from './publish/publishing.ts'
import type { StreamOptions } from './pull/stream.ts'
import type { ChannelListOptions, ChannelWindow } from './read/channel-window.ts'
import type { ChannelEntry } from './read/entries.ts'
import type { StreamFrame } from './read/frame-reader.ts'
import type { Reach, Revocation } from './readers/orders.ts'

export interface Hub {
  /**
   * Appends one event. Resolves with its id when the log holds the event as durably as it promises, and this hub has the event
   * too: a reader that connects here afterwards gets it.
   */
  publish(channel: string, message: Message, options?: PublishOptions): Promise<PublishedEvent>
  /** Appends all events or none, next to each other and in the order given. */
  publishBatch(messages: readonly ChannelMessage[], options?: PublishOptions): Promise<PublishedEvent[]>
  /**
   * A stream inside this program: `for await (const { id, type, data } of hub.stream('orders/42', { from: cursor }))`. The stream
   * has all frames, the frames of the protocol included. It ends with the frame `close`. It rejects when nobody reads from it for
   * too long.
   *
   * @param selectors - channels or patterns
   */
  stream(selectors: string | readonly string[], options?: StreamOptions): AsyncIterable<StreamFrame>
  /**
   * The cursor to load state at, and to read a stream from afterwards. Take it before you load the state: everything up to it is
   * in the state then, if your program stores a change before it publishes it. What follows may be in the state already.
   *
   * @param selectors - channels or patterns
   */
  cursor(selectors: string | readonly string[]): Promise<string>
  /**
   * Ends a channel: nothing can be published to it any more. All readers, also late ones, get everything up to the end and then
   * `close`, `finished`. To end a channel again changes nothing.
   */
  end(channel: string): Promise<{ readonly id: string }>
  /**
   * Deletes a channel: ends it, and removes every event that it holds. Its readers get `close`, `finished`. A reader that is
   * behind gets `sync-required`, `forced`, before that. A reader that comes later gets 410 if it can read a status. To delete a
   * channel again changes nothing for readers. When the log has forgotten the channel, its name can be used again.
   */
  delete(channel: string): Promise<{ readonly id: string }>
  /** Invalidates the events that a channel holds. All its readers, also absent ones, are told `sync-required`, `forced`. */
  invalidate(channel: string): Promise<void>
  /** How many readers of a channel are connected to this hub, readers of patterns over it included. */
  readers(channel: string): number
  /**
   * Takes rights back: closes every stream of the subject on every hub of the log, and calls `onRevoke` there. This hub has done
   * so when the call returns. The promise resolves when all hubs have confirmed, or after three seconds with the number that
   * have. A hub without the log follows when it has the log again.
   */
  revoke(subject: string, options?: Partial<Omit<Revocation, 'subject'>>): Promise<Reach>
  /** Closes all streams, spread over time, so that readers do not return together. Resolves when the last stream is closed. */
  drain(options?: DrainOptions): Promise<void>
  /** Closes every stream, then the log. */
  close(): Promise<void>
  /** Calls `observe` for each observation of that kind until the returned function is called. */
  readonly on: Observers['on']
  /** The log of the hub, for a banner, a health check or a backup, to change the format of ids, and to agree with other hubs. */
  readonly log: Pick<
    Log,
    'name' | 'durability' | 'window' | 'meet' | 'putIfAbsent' | 'clock' | 'backup' | 'budget' | 'formats' | 'switchIds'
  >
  /** What operators call: to see connections, channels and figures, and to disconnect readers. */
  readonly admin: HubAdmin
  /** For adapters, which connect readers and publishers; `@rejoin/hub/node` is one. */
  readonly port: HubPort
}

/** What operators call. `rejoin serve` has most of it as its admin API and its dashboard. */
export interface HubAdmin {
  /**
   * Closes a connection, or all connections of a subject, on every hub of the log. This hub has done so when the call returns:
   * `disconnected` counts its connections. The promise resolves as that of `revoke` does.
   */
  disconnect(who: { connection: string } | { subject: string }): Promise<Reach & { readonly disconnected: number }>
  /** Closes one connection of this hub. Returns false when it is not here. */
  disconnectHere(connection: string, options?: DisconnectOptions): boolean
  /** All readers that are connected to this hub now, by stream or by poll. */
  connections(): Iterable<Connection>
  /** The channels of the log, by name, some at a time. */
  channels(options?: ChannelListOptions): Promise<readonly (ChannelWindow & { readonly channel: string })[]>
  /** What a channel, or all channels of a pattern, hold for readers that return. */
  window(selector: string): Promise<ChannelWindow>
  /** The newest events of a channel, or of all channels of a pattern, without their data, oldest first. */
  entries(selector: string, options?: EntriesOptions): Promise<readonly ChannelEntry[]>
  /** What this hub has done since it opened. */
  readonly totals: Readonly<Totals>
  /** How long readers are told to wait before they return, in milliseconds, without the random part. */
  readonly retryMs: number
  /**
   * Asks `authorize` again for every stream of this hub, spread over `withinMs`, and closes the streams whose rights are gone.
   * Call it when the keys or the rules of `authorize` have changed.
   */
  renewRights(options?: { withinMs?: number | undefined }): void
  /**
   * Proves that events can be appended and delivered, without publishing one: the log writes an entry of its own, and this hub
   * receives everything that the log holds. Rejects with `log-unavailable`.
   */
  probe(): Promise<void>
}

/**
 * A hub with typed channels: a misspelt channel or type, or wrong data, does not compile.
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
  /** When the reader connected, in milliseconds since 1970. */
  readonly since: number
}

export interface DisconnectOptions {
  /** @defaultValue 'admin' */
  reason?: CloseReason | undefined
  /**
   * How long the reader is told to stay away, in milliseconds.
   * @defaultValue the time that the hub tells everybody now
   */
  retryMs?: number | undefined
}

export interface EntriesOptions {
  /**
   * The most events to list, up to 1,000.
   * @defaultValue 100
   */
  limit?: number | undefined
}

export interface DrainOptions {
  /**
   * The time over which streams are closed, in milliseconds.
   * @defaultValue 5000
   */
  withinMs?: number | undefined
  /** @defaultValue 'drain' */
  reason?: CloseReason | undefined
  /**
   * How long before the first `close` readers are told to stay away for longer, in milliseconds. `close` tells them as well, but
   * a reader whose connection is cut, for example because the process is killed, gets no `close`, and would return at once.
   * @defaultValue 0: readers are not told beforehand
   */
  announceMs?: number | undefined
}
