import {
  type ChannelSchemas,
  type ChannelsOf,
  type ChannelTypes,
  checkChannel,
  covers,
  createSchemaCheck,
  encodeCheckpoint,
  type Position,
  RejoinError,
} from '@rejoin/protocol'
import type { Environment } from '../environment.ts'
import { sliceQueueOf } from '../slice-queue.ts'
import { createByteLedger } from './byte-ledger.ts'
import { watchContact } from './contact.ts'
import type { Hub, HubAdmin, TypedHub } from './hub.ts'
import { checkedOptions, type HubOptions } from './hub-options.ts'
import { encodeFrames, framesOf } from './live/frame.ts'
import { createLive } from './live/live.ts'
import { shareText } from './live/sink.ts'
import { idsOf } from './log-ids.ts'
import { createObservers } from './observation.ts'
import type { HubPort } from './port.ts'
import { createPublishing } from './publish/publishing.ts'
import { createRetainedEvents } from './publish/retained.ts'
import { createPolls } from './pull/poll.ts'
import { createStream, streamRequest } from './pull/stream.ts'
import { createBlocks } from './read/blocks.ts'
import { channelWindows, maxListed, sharedWindows } from './read/channel-window.ts'
import { createEnds } from './read/ends.ts'
import { newestEntries } from './read/entries.ts'
import { findOpening, judgeWithoutLog, type OpeningContext } from './read/opening.ts'
import { createSegments } from './read/segments.ts'
import { createSnapshots } from './read/snapshot.ts'
import { createAdmission } from './readers/admission.ts'
import { createHeartbeat } from './readers/heartbeat.ts'
import { createOrders, type Revocation } from './readers/orders.ts'
import { createPresence } from './readers/presence.ts'
import { createRapidReturns } from './readers/rapid-returns.ts'
import { createRetryPolicy } from './readers/retry.ts'
import { createSessions, type Sessions } from './readers/sessions.ts'
import { createSubscribing } from './readers/subscribing.ts'
import { watchWindow } from './sizing.ts'

// How often the ids of quiet readers are checked. An id may lag by a minute.
const checkpointEveryMs = 10_000
// The time over which streams are closed when the log is silent.
const leaveWithinMs = 5000

/**
 * Opens a hub on a log. `publish` is typed by `schemas`, or by the type of the channels that you give.
 */
export function createHub<Given extends ChannelSchemas>(
  options: HubOptions & { schemas: Given },
): Promise<TypedHub<ChannelsOf<Given>>>
export function createHub(options: HubOptions): Promise<Hub>
export function createHub<Channels extends ChannelTypes>(options: HubOptions): Promise<TypedHub<Channels>>
export async function createHub(options: HubOptions): Promise<Hub> {
  const settings = checkedOptions(options)
  const { environment, heartbeatMs, hotBytes, retain } = settings
  const totals = { events: 0, deliveries: 0, bytes: 0 }
  const log = await options.log.open(environment)
  const ids = idsOf(log)
  const { idOf, idAt, pointAt } = ids
  const observers = createObservers()
  const slices = sliceQueueOf(environment)
  const windows = sharedWindows(log)
  const ends = createEnds(log)
  // Half of the memory is for new events, half for events that are read again for returning readers.
  const blocks = createBlocks({
    log,
    slices,
    maxBytes: hotBytes / 2,
    encode: (events) => encodeFrames(events, idOf),
  })
  const start = pointAt(await log.head())
  const live = createLive({
    start,
    hotBytes: hotBytes / 2,
    environment,
    totals,
    pointAt,
    isLater: (branch, other) => {
      const epochs = log.history.map(({ epoch }) => epoch)
      return epochs.indexOf(branch.epoch) > epochs.indexOf(other.epoch)
    },
    // Ids are rendered on the branch of the batch, also in frames that are encoded later.
    encode: (events, branch, isHeard) => framesOf(events, isHeard, (position) => idAt({ position, branch })),
    encodeCheckpoint: (at) => shareText(encodeCheckpoint({ id: idAt(at) })),
    onEvent: ends.published,
    onInvalidation(channel) {
      blocks.invalidate(channel)
      ends.invalidated(channel)
    },
    onEnd: ends.add,
    onLostPosition() {
      blocks.clear()
      ends.clear()
    },
  })
  const tail = await log.tail(start.position, live.apply)
  const segments = createSegments({ log, live, blocks, environment, pointAt })

  const retry = createRetryPolicy(options, environment, () => sessions.size)
  const presence = createPresence(environment)
  const sessions: Sessions = createSessions({ environment, presence, retry })
  const heartbeat = createHeartbeat(heartbeatMs, environment, retry)
  const memory = createByteLedger({
    ...settings,
    onAnswerEvicted: (pending) => observers.tell('unread', { pending }),
  })
  const stopCheckpoints = every(checkpointEveryMs, live.checkpoint, environment)
  const stopWatchingWindow = watchWindow({ log, observers, environment })
  const contact = watchContact({
    log,
    environment,
    maxSilenceMs: settings.maxTailSilenceMs,
    onLost(cause) {
      const local = options.whenDown === 'local' && !cause
      const silentMs = log.tailSilenceMs?.() ?? 0
      observers.tell('silence', { silentMs, ...(cause && { cause }), ...(local && { local }) })
      live.fallSilent()
      if (local) publishing.goLocal()
      else void sessions.closeWithin(leaveWithinMs, 'log-unavailable')
    },
  })
  /** Like `live.heard`. A hub that hears nothing from its log does not wait. */
  const heard = (position: Position) => (contact.isLost ? undefined : live.heard(pointAt(position)))
  const publishing = createPublishing({
    log,
    live,
    environment,
    observers,
    retain,
    idOf,
    heard,
    whenDown: options.whenDown,
    check: options.schemas && createSchemaCheck(options.schemas),
    reached: (position) => live.reached(pointAt(position)),
  })
  const orders = await createOrders({
    log,
    environment,
    carryOut(order) {
      try {
        if ('revoke' in order) revokeHere(order.revoke)
        else sessions.disconnect(order.disconnect)
      } catch (cause) {
        observers.tell('error', { cause })
      }
    },
  })
  let isDraining = false
  let isClosed = false
  let closing: Promise<void> | undefined

  const opening: OpeningContext = {
    log,
    live,
    segments,
    pointAt,
    slices,
    windows,
    ends,
    now: environment.now,
    maxReplayEvents: settings.maxReplayEvents,
    maxReplayAgeMs: settings.maxReplayAgeMs,
  }
  const admission = createAdmission(options.limits ?? {})
  const subscribing = createSubscribing({
    environment,
    observers,
    admission,
    returns: createRapidReturns({ max: settings.maxRapidReturns, environment, retry }),
    sessions,
    heartbeat,
    retry,
    contact,
    publishing,
    opening,
    memory,
    isLeaving: () => isDraining || isClosed,
    session: {
      ...ids,
      log,
      live,
      segments,
      slices,
      windows,
      retry,
      environment,
      observers,
      heartbeatMs,
      ends,
      totals,
      presence,
      retained: createRetainedEvents(log, retain, idOf),
      snapshots: createSnapshots(options, environment, live),
      startsAtBeginning: (selectors) =>
        selectors.every((selector) => settings.fromStart.some((declared) => covers(declared, selector))),
      isLocal: () => publishing.isLocal,
      findOpening: (subscription, from, isGone) =>
        publishing.isLocal && from.from === 'cursor'
          ? judgeWithoutLog(opening, subscription, from.cursor)
          : findOpening(opening, subscription, from, isGone),
    },
  })
  const polls = createPolls({
    environment,
    observers,
    admission,
    reachHead,
    mark: live.mark,
    answers: memory.answers,
    nameConnection: subscribing.nameConnection,
    rejectionOf: subscribing.rejectionOf,
    rejectAnswer: subscribing.rejectAnswer,
    attach: subscribing.attach,
  })

  const port: HubPort = {
    defaultChannel: settings.defaultChannel,
    admit: subscribing.admit,
    subscribe: subscribing.subscribe,
    stream: (request, pulling) => createStream(subscribing.subscribe, request, pulling),
    async poll(request, polling) {
      // Without the log, each answer would be `sync-required`, and the reader would poll again at once.
      if (!publishing.isLocal) return polls.poll(request, polling)
      const reason = 'log-unavailable'
      return { reason, retryMs: retry.forClose(request.subscription.selectors, reason) }
    },
    get revocations() {
      return presence.revocations
    },
    retryMsFor: (selectors) => retry.forClose(selectors),
    rejected: (reader) => observers.tell('reject', reader),
    failed: (cause) => observers.tell('error', { cause }),
    memory: { streams: memory.streams, answers: memory.answers, bodies: memory.bodies },
  }

  /** Resolves when the readers here have everything that the log holds now. */
  async function reachHead(): Promise<void> {
    const head = await log.head()
    await live.reached(pointAt(head))
  }

  async function end(channel: string): Promise<{ readonly id: string }> {
    if (isClosed) throw new RejoinError('The hub is closed.', { code: 'closed' })
    const { position } = await log.end(checkChannel(channel))
    const id = idOf(position)
    await heard(position)
    return { id }
  }

  function revokeHere(revocation: Revocation): void {
    options.onRevoke?.(revocation)
    presence.revoke(revocation.subject)
  }

  async function closeAll(): Promise<void> {
    isClosed = true
    heartbeat.stop()
    memory.stop()
    stopCheckpoints()
    stopWatchingWindow()
    contact.stop()
    orders.stop()
    publishing.close()
    tail.close()
    sessions.closeAll('drain')
    polls.close()
    live.close()
    await log.close()
  }

  const admin: HubAdmin = {
    ...channelWindows({ log, windows, idOf }),
    totals,
    connections: sessions.list,
    get retryMs() {
      return retry.baseMs
    },
    entries: (selector, { limit = 100 } = {}) =>
      newestEntries({ ...opening, idOf }, selector, Math.min(limit, maxListed)),
    async disconnect(who) {
      const disconnected = sessions.disconnect(who)
      return { disconnected, ...(await orders.give({ disconnect: who })) }
    },
    disconnectHere(connection, { reason = 'admin', retryMs } = {}) {
      const session = sessions.get(connection)
      if (!session) return false
      if (retryMs === undefined) sessions.close(session, reason)
      else session.end(reason, { retryMs })
      return true
    },
    renewRights: ({ withinMs = 3000 } = {}) => presence.renewAll(withinMs),
    async probe() {
      await log.probe()
      await reachHead()
    },
  }

  return {
    admin,
    log,
    port,
    on: observers.on,
    publish: publishing.publish,
    publishBatch: publishing.publishBatch,
    readers: (channel) => sessions.readersOf(checkChannel(channel)),
    async cursor(selectors) {
      // Rejects what no stream could read later.
      streamRequest(selectors, {})
      if (isClosed) throw new RejoinError('The hub is closed.', { code: 'closed' })
      // What this hub has received, not the head of the log: any hub can serve a stream from there, at once or when its tail has
      // come that far.
      return idAt(live.head)
    },
    stream: (selectors, streaming) => port.stream(streamRequest(selectors, streaming), streaming),
    async invalidate(channel) {
      const entry = await log.invalidate(checkChannel(channel))
      await heard(entry.position)
    },
    end,
    async delete(channel) {
      const { id } = await end(channel)
      const { position } = await log.invalidate(channel)
      await heard(position)
      return { id }
    },
    async revoke(subject, which = {}) {
      const revocation = { at: environment.now(), ...which, subject }
      revokeHere(revocation)
      return orders.give({ revoke: revocation })
    },
    async drain({ withinMs = 5000, reason = 'drain', announceMs = 0 } = {}) {
      isDraining = true
      if (announceMs > 0) {
        // The second half of the time is for slow connections.
        heartbeat.announceEnd(announceMs / 2)
        await new Promise<void>((resolve) => environment.after(announceMs, resolve))
      }
      await sessions.closeWithin(withinMs, reason)
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
