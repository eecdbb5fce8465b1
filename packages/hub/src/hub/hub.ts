import {
  type Branch,
  branchAt,
  type CloseReason,
  checkChannel,
  checkName,
  encodeCheckpoint,
  type Position,
  RejoinError,
  renderId,
} from '@rejoin/protocol'
import type { Environment } from '../environment.ts'
import type { Log, Window } from '../log/contract.ts'
import { sliceQueueOf } from '../slice-queue.ts'
import { createAdmission } from './admission.ts'
import { createBlocks } from './blocks.ts'
import { type ChannelListOptions, type ChannelWindow, shownWindow } from './channel-window.ts'
import { watchContact } from './contact.ts'
import { createEnds } from './ends.ts'
import { isFinishedFor } from './finished.ts'
import { encodeFrames, framesOf } from './frame.ts'
import type { StreamFrame } from './frame-reader.ts'
import { createHeartbeat } from './heartbeat.ts'
import { checkedOptions, type HubOptions } from './hub-options.ts'
import { createIncoming, type Incoming } from './incoming.ts'
import { createLive } from './live.ts'
import type { Message } from './message.ts'
import { createObservers, type Observers, type ReaderFacts } from './observation.ts'
import { findOpening, judgeWithoutLog, type Start } from './opening.ts'
import { createOrders, type Reach, type Revocation } from './orders.ts'
import { sharedWindows } from './pattern-windows.ts'
import { createPolls, type PollAnswer, type PollOptions } from './poll.ts'
import { anonymous } from './poll-readers.ts'
import { createPresence, type Rights } from './presence.ts'
import { type ChannelMessage, createPublishing, type PublishedEvent, type PublishOptions } from './publishing.ts'
import { createReadership } from './readership.ts'
import { createRetainedEvents } from './retained.ts'
import { createRetryPolicy } from './retry.ts'
import { createSession, type Session } from './session.ts'
import { type Sink, shareBytes } from './sink.ts'
import { watchWindow } from './sizing.ts'
import { createSnapshots } from './snapshot.ts'
import { createStallWatch } from './stall.ts'
import { createStream, type StreamOptions } from './stream.ts'
import type { Subscription } from './subscription.ts'
import type { Totals } from './totals.ts'
import { createUnread, type Unread } from './unread.ts'

export interface Hub {
  /**
   * Appends one event. Resolves with its id once the log holds it as durably as it promises, and this hub has it: a reader
   * that connects here afterwards finds it.
   */
  publish(channel: string, message: Message, options?: PublishOptions): Promise<PublishedEvent>
  /** Appends all events, next to each other in the order given, or none. */
  publishBatch(messages: readonly ChannelMessage[], options?: PublishOptions): Promise<PublishedEvent[]>
  /** Connects a reader; one for whom there is no room is sent away at once, with `close`. Adapters call this; `@rejoin/hub/node` is one. */
  subscribe(request: SubscribeRequest, sink: Sink): Session
  /**
   * A stream inside this program: `for await (const { id, type, data } of hub.stream(…))`. All frames are in it, those of
   * the protocol included. It ends with the frame `close`, and rejects when it was not read from for too long.
   */
  stream(request: SubscribeRequest, options?: StreamOptions): AsyncIterable<StreamFrame>
  /**
   * Gives a reader that cannot hold a stream open what it would have read there: at once what it missed, else what happens
   * first, else nothing after `waitMs`. Asked again and again with the cursor of the last answer, it is a stream.
   */
  poll(request: SubscribeRequest, options?: PollOptions): Promise<PollAnswer | Refusal>
  /** Why a reader would be turned away now, for adapters that can say so by status; undefined when it is welcome. */
  refuse(reader: ReaderFacts, subscription: Subscription): Refusal | undefined
  /**
   * Ends a channel: nothing can be published to it any more. Readers get everything up to the end and then `close`,
   * `finished`, also those that come late. Ending it again changes nothing.
   */
  end(channel: string): Promise<{ readonly id: string }>
  /**
   * Whether a reader that returns has nothing to come back for: every channel it asks for has ended, and it has all of
   * them. Adapters answer it with 204, after which an `EventSource` stays away.
   */
  hasNothingFor(request: SubscribeRequest): Promise<boolean>
  /** How many readers of a channel are connected to this hub, by its name or a pattern. */
  readers(channel: string): number
  /** Who is connected to this hub now, streams and polls. */
  connections(): Iterable<Connection>
  /** Ends one connection with `close`; false when it is not here. */
  disconnect(connection: string, options?: DisconnectOptions): boolean
  /** The channels the log knows, by name, some at a time. */
  channels(options?: ChannelListOptions): Promise<readonly (ChannelWindow & { readonly channel: string })[]>
  /** What this hub has done since it opened. */
  readonly totals: Readonly<Totals>
  /** Answers to polls that are in memory. Adapters tell it of those that are on their way. */
  readonly unread: Unread
  /** Bodies of publishes that are in memory. Adapters tell it of those that come. */
  readonly incoming: Incoming
  /** What readers are told to wait before they come back, in milliseconds, before chance adds to it. */
  readonly retryMs: number
  /**
   * Proves that events can be appended and handed out, without an event: the log has written something of its own, and what
   * it holds has arrived here. Rejects with `log-unavailable`.
   */
  probe(): Promise<void>
  /** Declares what a channel holds void. Its readers, here, elsewhere and absent, are told `sync-required`, `forced`. */
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
  /** How often either was done; adapters note it before they ask for rights. */
  readonly revocations: number
  /** Ends all streams, spread over a while so that readers return spread; resolves when the last has ended. */
  drain(options?: DrainOptions): Promise<void>
  /** Told by adapters: the program's own code failed while a request was answered. Goes to those who observe `error`. */
  failed(cause: unknown): void
  /** What a channel, or all channels of a pattern, hold now for those who return to them. */
  window(channel: string): Promise<ChannelWindow>
  /** Calls `observe` for each observation of that kind until the returned function is called. */
  readonly on: Observers['on']
  /** What the hub stands on, for a banner or a health check. */
  readonly log: Pick<Log, 'name' | 'durability' | 'window' | 'meet'>
  /** Ends every stream in order and closes the log. */
  close(): Promise<void>
}

export interface Connection extends ReaderFacts {
  readonly connection: string
  readonly channels: readonly string[]
  readonly mode: 'replaying' | 'live'
  /** Whether it reads too slowly, and how many bytes wait for it. */
  readonly full: boolean
  readonly pending: number
  /** When it connected, in milliseconds since 1970. */
  readonly since: number
}

export interface DisconnectOptions {
  /** @defaultValue 'admin' */
  reason?: CloseReason
  /**
   * When it should be back, in milliseconds.
   * @defaultValue what the hub tells everybody now
   */
  retryMs?: number
}

export interface SubscribeRequest {
  readonly subscription: Subscription
  readonly start: Start
  /** Who reads; known to the adapter only. */
  readonly reader?: ReaderFacts
  /** Under which rights. The stream is closed when they expire, are revoked, or turn out to have shrunk. */
  readonly rights?: Rights
  /**
   * Names the client over all its connections, and counts them: a higher attempt of the same subject ends the older
   * connection, which may be a dead line that nobody has noticed.
   */
  readonly client?: { readonly id: string; readonly attempt: number }
  /**
   * How heartbeats are sent. A page is not shown the comments that its `EventSource` reads, but gets events.
   * @defaultValue 'comment'
   */
  readonly heartbeat?: 'comment' | 'event'
}

export interface Refusal {
  readonly reason: string
  readonly retryMs: number
}

export interface DrainOptions {
  /**
   * Over how long the ends are spread, in milliseconds.
   * @defaultValue 5000
   */
  withinMs?: number
  /** @defaultValue 'drain' */
  reason?: CloseReason
}

// Cursors of quiet readers are looked at this often; they may lag by a minute.
const checkpointEveryMs = 10_000
const maxListed = 1000
// Over how long readers are sent away when the log is silent.
const leaveWithinMs = 5000

export async function createHub(options: HubOptions): Promise<Hub> {
  const settings = checkedOptions(options)
  const { environment, heartbeatMs, hotBytes, retain } = settings
  const totals = { events: 0, deliveries: 0, bytes: 0 }
  const log = await options.log.open(environment)
  const idOf = (position: Position) => renderId(position, log)
  const idOn = (position: Position, branch: Branch) => log.formats.encode(position, branch)
  const branchOf = (position: Position) => branchAt(log.history, position) ?? (log.history[0] as Branch)
  const observers = createObservers()
  const sessions = new Set<Session>()
  const byConnection = new Map<string, Session>()
  const presence = createPresence(environment)
  const readership = createReadership()
  const ends = createEnds(log)
  const admission = createAdmission(options.limits ?? {})
  const retry = createRetryPolicy(options, environment, () => sessions.size)
  // Half for what is new, half for what returning readers make us read again.
  const slices = sliceQueueOf(environment)
  const windows = sharedWindows(log)
  const blocks = createBlocks({
    ...{ log, slices, maxBytes: hotBytes / 2 },
    encode: (events) => encodeFrames(events, idOf),
  })
  const start = await log.head()
  const live = createLive({
    start,
    startBranch: branchOf(start),
    hotBytes: hotBytes / 2,
    environment,
    totals,
    branchOf,
    isLater: (branch, other) => {
      const epochs = log.history.map(({ epoch }) => epoch)
      return epochs.indexOf(branch.epoch) > epochs.indexOf(other.epoch)
    },
    // Rendered on the branch the batch came on, also those that are encoded when somebody asks for them.
    encode: (events, branch, isHeard) => framesOf(events, isHeard, (position) => idOn(position, branch)),
    encodeCheckpoint: (position, branch) => shareBytes([Buffer.from(encodeCheckpoint({ id: idOn(position, branch) }))]),
    onInvalidation: blocks.invalidate,
    onEnd: ends.add,
    onLostPlace() {
      blocks.clear()
      ends.clear()
    },
  })
  const tail = await log.tail(start, live.apply)
  const heartbeat = createHeartbeat(heartbeatMs, environment, retry)
  const stalls = createStallWatch(settings.stallTimeoutMs, environment)
  const unread = createUnread({
    ...{ maxBytes: settings.maxAnswerBytes, environment, stalls },
    onGivenUp: (pending) => observers.tell('unread', { pending }),
  })
  const stopCheckpoints = every(checkpointEveryMs, live.checkpoint, environment)
  const stopWatchingWindow = watchWindow({ log, observers, environment })
  const contact = watchContact({
    ...{ log, environment, maxSilenceMs: settings.maxTailSilenceMs },
    onLost(cause) {
      const local = options.whenDown === 'local' && !cause
      const silentMs = log.tailSilenceMs?.() ?? 0
      observers.tell('silence', { silentMs, ...(cause && { cause }), ...(local && { local }) })
      live.fallSilent()
      if (local) publishing.goLocal()
      else void endAll('log-unavailable', leaveWithinMs)
    },
  })
  /** What was put into the log has come to the readers here, as far as the log tells anything now. */
  const heard = (position: Position) => (contact.isLost ? Promise.resolve() : live.heard(position, branchOf(position)))
  const publishing = createPublishing({
    ...{ log, live, environment, observers, retain, idOf, heard, whenDown: options.whenDown },
    reached: (position) => live.reached(position, branchOf(position)),
  })
  const orders = await createOrders({
    ...{ log, environment },
    carryOut(order) {
      try {
        if ('revoke' in order) revokeHere(order.revoke)
        else disconnectHere(order.disconnect)
      } catch (cause) {
        observers.tell('error', { cause })
      }
    },
  })
  let draining = false
  let closed = false

  function revokeHere(revocation: Revocation): void {
    options.onRevoke?.(revocation)
    presence.revoke(revocation.subject)
  }

  function disconnectHere(who: { connection: string } | { subject: string }): number {
    const ended =
      'connection' in who
        ? [byConnection.get(who.connection)].filter((session) => session !== undefined)
        : [...sessions].filter(({ reader }) => reader.subject === who.subject)
    for (const session of ended) sayGoodbye(session, 'admin')
    return ended.length
  }
  let closing: Promise<void> | undefined

  const opening = {
    log,
    live,
    blocks,
    branchOf,
    slices,
    windows,
    now: environment.now,
    maxReplayEvents: settings.maxReplayEvents,
    maxReplayAgeMs: settings.maxReplayAgeMs,
  }
  const context = {
    ...{ log, live, blocks, slices, windows, stalls, retry, environment, observers, heartbeatMs },
    ...{ idOf, idOn, branchOf, ends, totals },
    retained: createRetainedEvents(log, retain, idOf),
    snapshots: createSnapshots(options, environment, live),
    isLocal: () => publishing.isLocal,
    findOpening: async (subscription: Subscription, from: Start, isGone: () => boolean) =>
      publishing.isLocal && from.from === 'cursor'
        ? judgeWithoutLog(opening, subscription, from.cursor)
        : findOpening(opening, subscription, from, isGone),
    presence,
    onEnd(session: Session) {
      forget(session)
      admission.leave(session.reader)
    },
  }
  const polls = createPolls({
    ...{ environment, observers, admission, nameConnection, reachHead, mark: live.mark, unread },
    knock({ reader = anonymous, subscription }) {
      admission.knock(reader, environment.now())
      const reason = refusal(reader, subscription)
      return reason === undefined ? undefined : { reason, retryMs: retry.forGoodbye(subscription.channels) }
    },
    refuseAnswer({ reader = anonymous, subscription: { channels } }) {
      observers.tell('reject', { ...reader, channels, reason: 'memory' })
      return { reason: 'overloaded', retryMs: retry.forGoodbye(channels) }
    },
    attach({ reader = anonymous, ...request }, sink, connection, told) {
      const asked = { connection, reader, subscription: request.subscription, start: request.start }
      const session = createSession({ ...context, observers: told, onEnd: forget }, asked, sink)
      if (closed || draining) sayGoodbye(session, 'drain')
      else begin(session, request)
      return session
    },
  })

  /** Resolves when what the log holds now has come to the readers here. */
  async function reachHead(): Promise<void> {
    const head = await log.head()
    await live.reached(head, branchOf(head))
  }

  /** 40 bits, because with 24 two of ten thousand readers would share a name as often as not. */
  function nameConnection(): string {
    return `c_${Math.floor(environment.random() * 2 ** 40)
      .toString(16)
      .padStart(10, '0')}`
  }

  function begin(session: Session, { rights, client }: SubscribeRequest): void {
    sessions.add(session)
    byConnection.set(session.connection, session)
    readership.add(session.subscription)
    if (rights) presence.add(session, rights, client)
    session.start()
  }

  function subscribe(request: SubscribeRequest, sink: Sink): Session {
    const { subscription, start: from, reader = anonymous } = request
    const session = createSession(context, { connection: nameConnection(), subscription, start: from, reader }, sink)
    // Judged and counted in one step, so that readers who come together cannot all take the last place.
    admission.knock(reader, environment.now())
    const turnedAway = closed || draining ? 'drain' : refusalReason(request, reader)
    admission.enter(reader)
    if (turnedAway) {
      sayGoodbye(session, turnedAway)
      return session
    }
    heartbeat.add(session, request.heartbeat === 'event')
    begin(session, request)
    return session
  }

  /** A reader with a cursor is let in while the log is away: it waits for a while, and is sent on with its place. */
  function refusalReason(
    { subscription, start: from }: SubscribeRequest,
    reader: ReaderFacts,
  ): CloseReason | undefined {
    const isServed = from.from === 'cursor' || (publishing.isLocal && from.from === 'now')
    if (contact.isLost && !isServed) return 'log-unavailable'
    return refusal(reader, subscription) === undefined ? undefined : 'overloaded'
  }

  function sayGoodbye(session: Session, reason: CloseReason): void {
    session.end(reason, { retryMs: retry.forGoodbye(session.subscription.channels) })
  }

  function endAll(reason: CloseReason, withinMs: number): Promise<unknown> {
    const ends = [...sessions].map(
      (session) =>
        new Promise<void>((resolve) => {
          environment.after(environment.random() * withinMs, () => {
            sayGoodbye(session, reason)
            resolve()
          })
        }),
    )
    return Promise.all(ends)
  }

  function forget(session: Session): void {
    if (sessions.delete(session)) readership.remove(session.subscription)
    if (byConnection.get(session.connection) === session) byConnection.delete(session.connection)
    heartbeat.remove(session)
    presence.remove(session)
  }

  function refusal(reader: ReaderFacts, { channels }: Subscription): string | undefined {
    const reason = admission.refuse(reader, environment.now())
    if (reason) observers.tell('reject', { ...reader, channels, reason })
    return reason
  }

  async function closeAll(): Promise<void> {
    closed = true
    heartbeat.stop()
    stalls.stop()
    stopCheckpoints()
    stopWatchingWindow()
    contact.stop()
    orders.stop()
    publishing.close()
    tail.close()
    for (const session of sessions) session.end('drain')
    polls.close()
    live.close()
    await log.close()
  }

  return {
    log,
    on: observers.on,
    publish: publishing.publish,
    publishBatch: publishing.publishBatch,
    subscribe,
    stream: (request, streaming) => createStream(subscribe, request, streaming),
    async poll(request, polling) {
      // An answer could only tell it to reload, and so could the next one, at once.
      if (!publishing.isLocal) return polls.poll(request, polling)
      return { reason: 'log-unavailable', retryMs: retry.forGoodbye(request.subscription.channels) }
    },
    refuse(reader, subscription) {
      const reason = contact.isLost && !publishing.isLocal ? 'log-unavailable' : refusal(reader, subscription)
      if (reason === undefined) return undefined
      admission.knock(reader, environment.now())
      return { reason, retryMs: retry.forGoodbye(subscription.channels) }
    },
    async invalidate(channel) {
      const entry = await log.invalidate(checkChannel(channel))
      await heard(entry.position)
    },
    async end(channel) {
      if (closed) throw new RejoinError('The hub is closed.', { code: 'closed' })
      const { position } = await log.end(checkChannel(channel))
      const id = idOf(position)
      await heard(position)
      return { id }
    },
    hasNothingFor: ({ subscription, start: from }) => isFinishedFor({ ...opening, ends }, subscription, from),
    readers: (channel) => readership.of(checkChannel(channel)),
    async window(channel) {
      const [held] = await windows([checkName(channel)])
      return shownWindow(held as Window, idOf, log)
    },
    async channels({ prefix = '', after = '', limit = 100 } = {}) {
      const windows = await log.channels({ prefix, after, limit: Math.min(limit, maxListed) })
      return windows.map((window) => ({ channel: window.channel, ...shownWindow(window, idOf, log) }))
    },
    *connections() {
      for (const { connection, reader, subscription, mode, full, pending, since } of sessions) {
        if (mode === 'ended') continue
        // Named one by one: `...reader` in front of them takes eighty times as long, and there may be ten thousand.
        const { ip, userAgent, subject } = reader
        yield { ip, userAgent, subject, connection, channels: subscription.channels, mode, full, pending, since }
      }
    },
    disconnect(connection, { reason = 'admin', retryMs } = {}) {
      const session = byConnection.get(connection)
      if (!session) return false
      if (retryMs === undefined) sayGoodbye(session, reason)
      else session.end(reason, { retryMs })
      return true
    },
    totals,
    unread,
    incoming: createIncoming(settings.maxIncomingBytes),
    get retryMs() {
      return retry.baseMs
    },
    async probe() {
      await log.probe()
      await reachHead()
    },
    async revoke(subject, which = {}) {
      const revocation = { ...which, subject, at: environment.now() }
      revokeHere(revocation)
      return orders.give({ revoke: revocation })
    },
    async disconnectAll(who) {
      const disconnected = disconnectHere(who)
      return { disconnected, ...(await orders.give({ disconnect: who })) }
    },
    renewRights: ({ withinMs = 3000 } = {}) => presence.renewAll(withinMs),
    get revocations() {
      return presence.revocations
    },
    failed: (cause) => observers.tell('error', { cause }),
    async drain({ withinMs = 5000, reason = 'drain' } = {}) {
      draining = true
      await endAll(reason, withinMs)
    },
    close() {
      closing ??= closeAll()
      return closing
    },
  }
}

function every(ms: number, task: () => void, environment: Environment): () => void {
  let cancel = environment.after(ms, run)
  function run(): void {
    task()
    cancel = environment.after(ms, run)
  }
  return () => cancel()
}
