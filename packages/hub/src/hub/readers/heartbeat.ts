import { encodeEvent, encodeHeartbeat, encodeRetry } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import { type SharedBytes, shareText } from '../live/sink.ts'
import type { RetryPolicy } from './retry.ts'

export interface HeartbeatReader {
  /** A full reader gets no heartbeat: it would only wait behind other bytes. */
  readonly full: boolean
  readonly subscription: { readonly selectors: readonly string[] }
  /** Which of the slots it is in. The heartbeat sets it. A field and no map, because thousands of readers come and go at once. */
  heartbeatSlot?: number
  push(bytes: SharedBytes): boolean
}

export interface Heartbeat {
  /** With `asEvent`, heartbeats are events: a native `EventSource` hides comments from its page (§4.7). */
  add(reader: HeartbeatReader, asEvent?: boolean): void
  remove(reader: HeartbeatReader): void
  /** Tells every reader, spread over this time, to stay away for longer, because its stream is about to close. */
  announceEnd(withinMs: number): void
  stop(): void
}

// Ten thousand writes at once would block everything else for tens of milliseconds. Spread over slots, few are due at a time.
const slotCount = 25

/** One timer serves all readers, spread over the slots of the interval. A new retry time is sent with the heartbeat. */
export function createHeartbeat(intervalMs: number, environment: Environment, retry: RetryPolicy): Heartbeat {
  const beats = { comment: encodeHeartbeat(), event: encodeEvent({ type: 'heartbeat', data: '{}' }) }
  const comment = shareText(beats.comment)
  const event = shareText(beats.event)
  const wantEvents = new Set<HeartbeatReader>()
  const slots = Array.from({ length: slotCount }, () => ({ readers: new Set<HeartbeatReader>(), told: retry.version }))
  const slotMs = intervalMs / slotCount
  let next = 0
  let due = 0
  let dueAt = environment.now() + slotMs

  function tick(): void {
    const now = environment.now()
    retry.observe(now - dueAt)
    dueAt = now + slotMs
    const slot = slots[due] as (typeof slots)[number]
    const { version } = retry
    const news = slot.told !== version
    slot.told = version
    for (const reader of slot.readers) {
      if (reader.full) continue
      const asEvent = wantEvents.has(reader)
      if (news) reader.push(beatWithRetry(reader, asEvent ? beats.event : beats.comment))
      else reader.push(asEvent ? event : comment)
    }
    due = (due + 1) % slotCount
    cancel = environment.after(slotMs, tick)
  }
  let cancel = environment.after(slotMs, tick)

  function beatWithRetry({ subscription }: HeartbeatReader, beat: string): SharedBytes {
    return withRetry(retry.forOne(subscription.selectors), beat)
  }

  function announceTo(readers: ReadonlySet<HeartbeatReader>): void {
    for (const reader of readers) {
      if (reader.full) continue
      reader.push(withRetry(retry.forClose(reader.subscription.selectors), beats.comment))
    }
  }

  return {
    add(reader, asEvent = false) {
      reader.heartbeatSlot = next
      slots[next]?.readers.add(reader)
      next = (next + 1) % slotCount
      if (asEvent) wantEvents.add(reader)
    },
    remove(reader) {
      slots[reader.heartbeatSlot ?? 0]?.readers.delete(reader)
      wantEvents.delete(reader)
    },
    announceEnd(withinMs) {
      slots.forEach(({ readers }, index) => {
        environment.after((withinMs * index) / slotCount, () => announceTo(readers))
      })
    },
    stop: () => cancel(),
  }
}

function withRetry(retryMs: number, beat: string): SharedBytes {
  return shareText(encodeRetry(retryMs) + beat)
}
