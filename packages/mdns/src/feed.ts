import type { Hub, StreamFrame } from '@rejoin/hub'
import type { PullOptions, SubscribeRequest } from '@rejoin/hub/internal'
import { RejoinError } from '@rejoin/protocol'
import type { Fact } from './service.ts'
import type { Timing } from './timing.ts'

/** A fact that was published, with the id that it has for every reader. */
export interface KnownFact {
  readonly id: string
  readonly fact: Fact
}

/**
 * Publishes facts to one channel of a hub, in order and each once. Keeps the last fact of each service for readers that
 * come late.
 */
export interface Feed {
  /**
   * Begins anew. The events in the channel came from an earlier browse, and nobody knows what happened between the two
   * browses. So readers of the earlier events are told `sync-required`.
   */
  open(): Promise<void>
  say(facts: readonly Fact[]): void
  /** The last fact of each service that is there, in the order of the ids. */
  known(): Promise<readonly KnownFact[]>
  /**
   * Opens a stream of the channel. A stream that starts at the head comes with the services that are there at that
   * position: every fact is either among these services or arrives on the stream.
   */
  join(request: SubscribeRequest, options: PullOptions): Promise<Joined>
  /** Calls `listener` after each publish, until the returned function is called. */
  onChange(listener: () => void): () => void
  close(): void
}

export interface Joined {
  readonly known: readonly KnownFact[]
  readonly frames: AsyncIterator<StreamFrame>
}

export interface FeedOptions {
  readonly hub: Hub
  readonly channel: string
  readonly timing: Timing
  /** The facts that are true now, for a feed that starts over. */
  current(): readonly Fact[]
}

// The most events that a hub takes in one batch.
const maxBatch = 1000
// Facts that wait while the log is slow or away. With more, the feed starts over.
const maxWaiting = 10_000
const retryMs = 1000

export function createFeed({ hub, channel, timing, current }: FeedOptions): Feed {
  const last = new Map<string, KnownFact>()
  const listeners = new Set<() => void>()
  let waiting: Fact[] = []
  let publishing = false
  const quietWork: (() => void)[] = []
  let closed = false

  function say(facts: readonly Fact[]): void {
    if (closed) return
    // One fact too many is enough to start over, which drops them all.
    for (const fact of facts) if (waiting.length <= maxWaiting) waiting.push(fact)
    if (!publishing) void publishAll()
  }

  /** Never rejects: facts that cannot be published are tried again for as long as the feed is open. */
  async function publishAll(): Promise<void> {
    publishing = true
    let failures = 0
    while (waiting.length > 0 && !closed) {
      const isPublished = waiting.length <= maxWaiting && (await publishSome(waiting.splice(0, maxBatch)))
      failures = isPublished ? 0 : failures + 1
      // A hub may reject every fact, for example because of a schema of the channel. Then it is asked with a pause.
      if (failures > 1) await pause()
      if (!isPublished) await startOver()
      for (const work of quietWork.splice(0)) work()
      for (const listener of listeners) listener()
    }
    publishing = false
    for (const work of quietWork.splice(0)) work()
  }

  async function publishSome(facts: readonly Fact[]): Promise<boolean> {
    const messages = facts.map(({ event, service }) => ({ channel, type: event, data: service }))
    const events = await hub.publishBatch(messages).catch(failed)
    facts.forEach((fact, index) => {
      const { id } = events?.[index] ?? {}
      // Adds the fact at the end, so that the map stays in the order of the ids.
      last.delete(fact.service.name)
      if (id !== undefined && fact.event !== 'removed') last.set(fact.service.name, { id, fact })
    })
    return events !== undefined
  }

  /**
   * After a publish that failed, nobody knows whether its facts are in the log. Facts that waited for too long are
   * dropped. In both cases readers are told of a gap, and all facts that are true now are published again.
   */
  async function startOver(): Promise<void> {
    while (!closed) {
      const isDone = await hub.invalidate(channel).then(() => true, failed)
      if (isDone) break
      await pause()
    }
    last.clear()
    waiting = [...current()]
  }

  function pause(): Promise<void> {
    return new Promise((resolve) => timing.after(retryMs, resolve))
  }

  function failed(cause: unknown): undefined {
    if (cause instanceof RejoinError && cause.code === 'closed') closed = true
    else hub.port.failed(cause)
  }

  /** Runs `work` while no publish is under way, so that `last` matches the log. */
  function whenQuiet<Result>(work: () => Result): Promise<Result> {
    return new Promise((resolve) => {
      if (publishing) quietWork.push(() => resolve(work()))
      else resolve(work())
    })
  }

  return {
    open: () => hub.invalidate(channel),
    say,
    known: () => whenQuiet(() => [...last.values()]),
    join: (request, options) =>
      // In one turn, so that nothing is published between the position of the stream and the copy.
      whenQuiet(() => ({
        frames: hub.port.stream(request, options)[Symbol.asyncIterator](),
        known: request.start.from === 'now' ? [...last.values()] : [],
      })),
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close() {
      closed = true
    },
  }
}
