import { createHash } from 'node:crypto'
import type { History } from '../history/history.ts'
import { protocolTypes, type StrictFrame } from './strict-frames.ts'

/** The data of the events of a run: what they are, so that whoever gets one can say so without asking anybody. */
export function writeData(channel: string, seq: number, bytes: number): string {
  const event = { channel, seq, pad: '' }
  event.pad = 'x'.repeat(Math.max(bytes - JSON.stringify(event).length, 0))
  // Now and then on several lines, which become several `data` lines of one frame.
  return seq % 5 === 0 ? JSON.stringify(event, null, 1) : JSON.stringify(event)
}

export function shaOf(data: string): string {
  return createHash('sha256').update(data).digest('base64url').slice(0, 12)
}

/**
 * The lines of one reader, and what they add up to. Whatever it is that reads tells this of what happens, in its own words;
 * the history has them in the words of history.ts.
 */
export function createReceipts(history: History, who: string, channels: readonly string[]): Receipts {
  const waiting = new Set<() => void>()
  const newest = new Map<string, number>()
  const skippedTo = new Set<string>()
  let count = 0
  let retryMs: number | undefined

  function changed(): void {
    for (const look of waiting) look()
  }

  const receipts: Receipts = {
    who,
    channels,
    get count() {
      return count
    },
    start: ({ once, from = null }) => history.write({ kind: 'reader', who, channels, once, from }),
    connect(requested) {
      retryMs = undefined
      history.write({ kind: 'connect', who, requested })
    },
    event(id, data) {
      const { channel, seq } = JSON.parse(data) as { channel: string; seq: number }
      history.write({ kind: 'recv', who, id, channel, seq, sha: shaOf(data) })
      count += 1
      newest.set(channel, Math.max(newest.get(channel) ?? 0, seq))
      changed()
    },
    gap({ requested, latest, reason, channels: lost }) {
      history.write({ kind: 'gap', who, from: requested, to: latest, reason, channels: lost })
      skippedTo.add(latest)
      changed()
    },
    frame(frame) {
      retryMs = frame.retryMs ?? retryMs
      if (frame.type === 'hello') {
        const { requested, resumed } = JSON.parse(frame.data) as { requested: string | null; resumed: boolean }
        history.write({ kind: 'open', who, requested, resumed, id: frame.id ?? null })
      } else if (isProtocol(frame) && frame.type !== 'sync-required' && frame.id !== undefined) {
        history.write({ kind: 'mark', who, id: frame.id })
      }
    },
    malformed: (why, text) => history.write({ kind: 'malformed', who, why, text }),
    close: (why, { frames, partial }) =>
      history.write({
        ...{ kind: 'close', who, why, frames },
        ...(partial ? { partial: partial.id } : {}),
        ...(retryMs === undefined ? {} : { retryMs }),
      }),
    end: () => history.write({ kind: 'end', who }),
    has: ({ channel, seq, id }) =>
      new Promise((resolve) => {
        const check = () => {
          if ((newest.get(channel) ?? 0) < seq && !skippedTo.has(id)) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        check()
      }),
  }
  return receipts
}

/** Whether a frame is the protocol's own and not an event of a publisher. */
export function isProtocol({ type }: Pick<StrictFrame, 'type'>): boolean {
  return type !== undefined && protocolTypes.includes(type)
}

export interface Receipts {
  readonly who: string
  readonly channels: readonly string[]
  /** Events so far, repeats too. */
  readonly count: number
  start(given: { once: boolean; from?: string | null }): void
  connect(requested: string | null): void
  /** An event was handed to whoever reads. */
  event(id: string, data: string): void
  gap(gap: { requested: string; latest: string; reason: string; channels: readonly string[] }): void
  /** A whole frame has passed on the wire. Of events only the protocol's own are told here. */
  frame(frame: StrictFrame): void
  malformed(why: string, text: string): void
  close(why: string, connection: { frames: number; partial: { id: string | null } | undefined }): void
  end(): void
  /** Resolves once this event, or a later one of its channel, was received, or a gap was announced up to it. */
  has(event: PublishedEvent): Promise<void>
}

export interface PublishedEvent {
  readonly channel: string
  readonly seq: number
  readonly id: string
}

/** A reader whose history is being written. */
export interface RecordedReader {
  readonly receipts: Receipts
  close(): void
}
