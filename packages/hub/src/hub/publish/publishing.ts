import { createHash } from 'node:crypto'
import { type CheckedMessage, createEpoch, type Position, RejoinError, type SchemaCheck } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import { invalidOption } from '../../invalid-option.ts'
import type { Appended, AppendOptions, Log, NewEvent, Stamp } from '../../log/contract.ts'
import { JsonText } from '../json-text.ts'
import type { Live } from '../live/live.ts'
import type { Observers } from '../observation.ts'
import { createLocalService, type LocalEvent } from './local-service.ts'
import { type Message, toNewEvent } from './message.ts'

/** Takes events to the log. With `whenDown: 'local'`, publishes without the log while it is away. */
export interface Publishing {
  publish(channel: string, message: Message, options?: PublishOptions): Promise<PublishedEvent>
  publishBatch(messages: readonly ChannelMessage[], options?: PublishOptions): Promise<PublishedEvent[]>
  /** Whether events are published without the log now. */
  readonly isLocal: boolean
  /** The log is away: from now on events are published without it, until it is back. */
  goLocal(): void
  /** Rejects all further publishes. */
  close(): void
}

export type ChannelMessage = Message & { readonly channel: string }

export interface PublishOptions {
  /** Publishes at most once under this key. A repeated publish gets the same ids. At most 255 characters. */
  readonly idempotencyKey?: string | undefined
  /** Whose key it is. Two subjects may use the same key. */
  readonly subject?: string | undefined
}

export interface PublishedEvent extends NewEvent {
  readonly id: string
  readonly at: number
  /** The log was away, and the event went to the readers of this hub alone. */
  readonly local?: boolean
  /** The event was published before, under the same idempotency key. Nothing was appended. */
  readonly repeated?: boolean
}

export interface PublishingContext {
  readonly log: Log
  readonly live: Live
  readonly environment: Environment
  readonly observers: Observers
  /** Channels and patterns that retain their newest values. */
  readonly retain: readonly string[]
  readonly whenDown: 'reject' | 'local' | undefined
  /** Checks messages by the schemas of their channels. */
  readonly check: SchemaCheck | undefined
  idOf(position: Position): string
  /**
   * Resolves when the readers here have everything up to this position, or the log falls silent. Undefined when they have it
   * already, so that most publishes need no `await`.
   */
  heard(position: Position): Promise<void> | undefined
  /** Like `heard`, but waits for a silent log. */
  reached(position: Position): Promise<void>
}

// One batch is one step of the log and one turn of every reader.
const maxBatch = 1000

export function createPublishing({
  log,
  live,
  environment,
  observers,
  retain,
  idOf,
  heard,
  reached,
  ...options
}: PublishingContext): Publishing {
  // Tells this hub's appends from those of every other hub on the same log.
  const hubName = createEpoch(environment.random)
  const local = createLocalService({
    log,
    live,
    environment,
    reached,
    onHealed: (channels) => observers.tell('healed', { channels }),
  })
  let appends = 0
  let closed = false

  /**
   * The whole way of a publish is one async function: at tens of thousands a second, promises are most of its cost.
   */
  async function publishAll<Answer>(
    toEntries: () => readonly NewEvent[],
    publishing: PublishOptions,
    answerOf: (events: PublishedEvent[]) => Answer,
  ): Promise<Answer> {
    const since = observers.has('publishCall') ? performance.now() : undefined
    try {
      const entries = toEntries()
      check(entries)
      const appended = local.isOpen ? undefined : await append(entries, publishing)
      // The ids are made before the wait: meanwhile the log may change to another branch, which could have the same positions.
      const events = appended ? published(entries, appended) : publishLocally(entries, publishing)
      const last = appended?.stamps.at(-1)
      const waiting = last && heard(last.position)
      if (waiting) await waiting
      if (appended && observers.has('publish')) tellPublished(events, appended, publishing)
      over(since)
      return answerOf(events)
    } catch (error) {
      over(since, error)
      throw error
    }
  }

  function over(since: number | undefined, error?: unknown): void {
    if (since !== undefined) observers.tell('publishCall', { elapsedMs: performance.now() - since, error })
  }

  function check(entries: readonly NewEvent[]): void {
    if (closed) throw new RejoinError('The hub is closed.', { code: 'closed' })
    if (entries.length > maxBatch) {
      throw new RejoinError(`The batch has ${entries.length} events. Publish at most ${maxBatch} at a time.`, {
        code: 'too-large',
      })
    }
  }

  /** Resolves with undefined when the log is away and the events go to local readers. */
  function append(entries: readonly NewEvent[], publishing: PublishOptions): Promise<Appended | undefined> {
    appends += 1
    const token = `${hubName}-${appends}`
    const once = onceOnly(entries, publishing)
    const appended = log.append(entries, once ? { token, once } : { token })
    return options.whenDown === 'local' ? appended.catch(whenDown) : appended
  }

  function published(entries: readonly NewEvent[], { stamps, repeated }: Appended): PublishedEvent[] {
    const events = entries.map(({ channel, type, data, content, live }, index) => {
      const { position, at } = stamps[index] as Stamp
      const id = idOf(position)
      if (live) return { id, channel, type, data, at, live, ...(content && { content }) }
      return content ? { id, channel, type, data, at, content } : { id, channel, type, data, at }
    })
    return repeated ? events.map((event) => ({ ...event, repeated })) : events
  }

  function tellPublished(
    events: readonly PublishedEvent[],
    { repeated }: Appended,
    { subject = null }: { subject?: string | null | undefined },
  ): void {
    for (const { channel, type, data, id } of events) {
      observers.tell('publish', { channel, type, id, bytes: Buffer.byteLength(data), subject, repeated })
    }
  }

  /** Rethrows every error, except that the log is away. */
  function whenDown(error: unknown): undefined {
    const isAway = error instanceof RejoinError && error.code === 'log-unavailable'
    if (!isAway || closed) throw error
  }

  function publishLocally(
    entries: readonly NewEvent[],
    { subject = null }: { subject?: string | null | undefined },
  ): PublishedEvent[] {
    // The log may have come back since it rejected these events. Then the service opens again, and all readers are told again.
    local.open()
    const stamps = local.publish(entries)
    return entries.map(({ channel, type, data, content }, index) => {
      const { id, at } = stamps[index] as LocalEvent
      observers.tell('local', { channel, type, id, bytes: Buffer.byteLength(data), subject })
      return { id, channel, type, data, at, local: true, ...(content && { content }) }
    })
  }

  function publish(channel: string, message: Message, publishing: PublishOptions = {}): Promise<PublishedEvent> {
    return publishAll(() => [toNewEvent(channel, message, retain)], publishing, first)
  }

  function publishBatch(
    messages: readonly ChannelMessage[],
    publishing: PublishOptions = {},
  ): Promise<PublishedEvent[]> {
    return publishAll(() => messages.map((message) => toNewEvent(message.channel, message, retain)), publishing, all)
  }

  const publishChecked: Publishing['publish'] = async (channel, message, publishing) => {
    await options.check?.(channel, toChecked(message))
    return publish(channel, message, publishing)
  }

  const publishBatchChecked: Publishing['publishBatch'] = async (messages, publishing) => {
    for (const message of messages) await options.check?.(message.channel, toChecked(message))
    return publishBatch(messages, publishing)
  }

  return {
    publish: options.check ? publishChecked : publish,
    publishBatch: options.check ? publishBatchChecked : publishBatch,
    get isLocal() {
      return local.isOpen
    },
    goLocal: local.open,
    close() {
      closed = true
      local.stop()
    },
  }
}

/** Schemas judge values, not their texts. */
function toChecked({ type, data, text }: Message): CheckedMessage {
  return { type, data: data instanceof JsonText ? JSON.parse(data.text) : data, text }
}

const first = (events: PublishedEvent[]) => events[0] as PublishedEvent
const all = (events: PublishedEvent[]) => events

function onceOnly(
  entries: readonly NewEvent[],
  { idempotencyKey, subject }: PublishOptions,
): AppendOptions['once'] | undefined {
  if (idempotencyKey === undefined) return undefined
  if (idempotencyKey === '' || idempotencyKey.length > 255 || /[^\x20-\x7e]/.test(idempotencyKey)) {
    throw invalidOption('An Idempotency-Key is 1 to 255 printable ASCII characters. A random UUID is a good one.')
  }
  return { scope: subject ?? '', key: idempotencyKey, hash: hashOf(entries) }
}

/** Leaves out `content`: hubs before it was added do not hash it, and would not recognise a repeated publish. */
function hashOf(entries: readonly NewEvent[]): string {
  const said = JSON.stringify(
    entries.map(({ channel, type, data, key, forget, live }) => [channel, type, data, key, forget, live]),
  )
  return createHash('sha256').update(said).digest('base64')
}
