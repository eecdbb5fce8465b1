import { RejoinError, renderId } from '@rejoin/protocol'
import { type Environment, systemEnvironment } from '../environment.ts'
import type { Log, LogEvent, LogSource, NewEvent } from '../log/contract.ts'
import { encodeFrame } from './frame.ts'
import { createHeartbeat } from './heartbeat.ts'
import { createLive } from './live.ts'
import { type Message, toNewEvent } from './message.ts'
import { createObservers, type Observers } from './observation.ts'
import { createSession, type Session } from './session.ts'
import type { Sink } from './sink.ts'
import type { SnapshotHook } from './snapshot.ts'
import type { Subscription } from './subscription.ts'

export interface HubOptions {
  /** Where events are kept: `memoryLog()`. The hub opens it and closes it. */
  log: LogSource
  /**
   * The longest silence on a stream, in milliseconds. Shorter notices dead lines sooner and costs more writes; keep it
   * under half of the shortest idle timeout on the way, which is 60 s for nginx.
   * @defaultValue 25000
   */
  heartbeatMs?: number
  /**
   * What readers are told to wait before they come back, in milliseconds. Shorter resumes sooner and makes a restart of
   * the hub a larger rush.
   * @defaultValue 2000
   */
  retryMs?: number
  /** Gives readers that lost something the current state along with the news. Without it they are only told. */
  snapshot?: SnapshotHook
  /**
   * How long the snapshot hook may take, in milliseconds. After that the gap is announced without it.
   * @defaultValue 5000
   */
  snapshotTimeoutMs?: number
  /**
   * Memory for encoded events of all channels together, from which returning readers are served without asking the log.
   * Less means more reads of the log, never a loss.
   * @defaultValue 33554432
   */
  hotBytes?: number
  /** Time, chance and scheduling; for tests. */
  environment?: Environment
}

export interface Hub {
  /** Appends one event. Resolves with its id once the log holds it as durably as it promises. */
  publish(channel: string, message: Message): Promise<PublishedEvent>
  /** Appends all events, next to each other in the order given, or none. */
  publishBatch(messages: readonly (Message & { readonly channel: string })[]): Promise<PublishedEvent[]>
  /** Connects a reader; on a closed hub it is sent away at once. Adapters call this; `@rejoin/hub/node` is one. */
  subscribe(request: SubscribeRequest, sink: Sink): Session
  /** Calls `observe` for each observation of that kind until the returned function is called. */
  readonly on: Observers['on']
  /** What the hub stands on, for a banner or a health check. */
  readonly log: Pick<Log, 'name' | 'durability' | 'window'>
  /** Ends every stream in order and closes the log. */
  close(): Promise<void>
}

export interface PublishedEvent extends NewEvent {
  readonly id: string
  readonly at: number
}

export interface SubscribeRequest {
  readonly subscription: Subscription
  /** The cursor the reader brought, as it arrived; null for none. */
  readonly cursor: string | null
}

export async function createHub(options: HubOptions): Promise<Hub> {
  const environment = options.environment ?? systemEnvironment
  const heartbeatMs = positive('heartbeatMs', options.heartbeatMs ?? 25_000)
  const retryMs = positive('retryMs', options.retryMs ?? 2000)
  const snapshotTimeoutMs = positive('snapshotTimeoutMs', options.snapshotTimeoutMs ?? 5000)
  const hotBytes = positive('hotBytes', options.hotBytes ?? 32 * 1024 * 1024)

  const log = await options.log.open(environment)
  const observers = createObservers()
  const idOf = (event: LogEvent) => renderId(event.position, { formats: log.formats, history: log.history })
  const start = await log.head()
  const live = createLive({ start, hotBytes, environment, encode: (event) => encodeFrame(event, idOf(event)) })
  const tail = await log.tail(start, live.apply)
  const heartbeat = createHeartbeat(heartbeatMs, environment)
  const sessions = new Set<Session>()
  let closed = false

  const context = {
    log,
    live,
    environment,
    observers,
    heartbeatMs,
    retryMs,
    snapshot: options.snapshot,
    snapshotTimeoutMs,
    onEnd(session: Session) {
      sessions.delete(session)
      heartbeat.remove(session)
    },
  }

  function assertOpen(): void {
    if (closed) throw new RejoinError('The hub is closed.', { code: 'closed' })
  }

  async function append(entries: readonly NewEvent[]): Promise<PublishedEvent[]> {
    const events = await log.append(entries)
    return events.map((event) => {
      const { channel, type, data, at } = event
      const id = idOf(event)
      observers.tell('publish', { channel, type, id, bytes: Buffer.byteLength(data) })
      return { id, channel, type, data, at }
    })
  }

  return {
    log,
    on: observers.on,
    async publish(channel, message) {
      assertOpen()
      const [event] = await append([toNewEvent(channel, message)])
      return event as PublishedEvent
    },
    async publishBatch(messages) {
      assertOpen()
      return append(messages.map((message) => toNewEvent(message.channel, message)))
    },
    subscribe({ subscription, cursor }, sink) {
      const session = createSession(context, subscription, cursor, sink)
      if (closed) {
        session.end('drain')
        return session
      }
      sessions.add(session)
      heartbeat.add(session)
      session.start()
      return session
    },
    async close() {
      if (closed) return
      closed = true
      heartbeat.stop()
      tail.close()
      for (const session of sessions) session.end('drain')
      await log.close()
    },
  }
}

function positive(name: string, value: number): number {
  if (value > 0 && value < 2 ** 31) return value
  throw new RejoinError(`${name} is ${value}. Give a number above 0 and below 2147483648.`, { code: 'invalid-option' })
}
