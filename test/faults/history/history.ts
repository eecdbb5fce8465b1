import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * A history in a file, one JSON object per line. Lines are kept back until there are 64 KB of them: a process that may be
 * killed has to `flush` before it does what a line speaks of.
 */
export function openHistory(file: string): History {
  mkdirSync(dirname(file), { recursive: true })
  const descriptor = openSync(file, 'w')
  let waiting = ''
  const flush = () => {
    writeSync(descriptor, waiting)
    waiting = ''
  }
  return {
    write(line) {
      waiting += textOf(line)
      if (waiting.length > 65_536) flush()
    },
    flush,
    close() {
      flush()
      closeSync(descriptor)
    },
  }
}

/** A history in memory, for runs of seconds. */
export function memoryHistory(): History & { readonly lines: readonly string[] } {
  const lines: string[] = []
  return {
    lines,
    write: (line) => void lines.push(textOf(line).trimEnd()),
    flush() {},
    close() {},
  }
}

/**
 * Where a run is written down. All lines of one publisher or reader go to one history, in the order in which things
 * happened to it; those of several may be mixed, or lie in several files.
 */
export interface History {
  write(line: UntimedLine): void
  flush(): void
  close(): void
}

/** A line without its time, which is then taken from the clock. */
export type UntimedLine = Line extends infer Each
  ? Each extends Line
    ? Omit<Each, 't'> & { t?: number }
    : never
  : never

export type Line = PublisherLine | ReaderLine | FactLine

interface Timed {
  /**
   * Ms since 1970, with fractions, of a clock that all processes of the run share and nobody steps. Order within a
   * publisher or a reader is the order of lines; `t` orders what happened to different ones.
   */
  readonly t: number
}

/**
 * A publish is named by its channel and by `seq`, a number that the test counts up per channel and puts into the data.
 * Numbers say who is who, not which comes first: concurrent publishers may be appended in any order. What counts as
 * earlier is a publish that was answered before the other was called.
 */
interface Publish extends Timed {
  readonly who: string
  readonly channel: string
  readonly seq: number
}

export type PublisherLine =
  /** The publish is about to be sent. A resend of the same publish is another `invoke` of the same `seq`. */
  | (Publish & {
      readonly kind: 'invoke'
      /** A hash of the data. */
      readonly sha: string
      /** The idempotency key, when the publisher sends one. */
      readonly key?: string
      /** What the event counts for in a window that is bounded by bytes. */
      readonly bytes?: number
    })
  /** Answered: the event is in the log under this id. */
  | (Publish & { readonly kind: 'ok'; readonly id: string })
  /** Rejected: the event is not in the log and never will be. */
  | (Publish & { readonly kind: 'fail'; readonly why: string })
  /** No answer, or one that leaves it open. The event may be in the log, or come to be, once. */
  | (Publish & { readonly kind: 'unknown'; readonly why: string })

interface OfReader extends Timed {
  readonly who: string
}

/**
 * A reader is one subscription across all its connections. Channels may be named by a prefix, as `orders/*`.
 */
export type ReaderLine =
  /** The first line of a reader. */
  | (OfReader & {
      readonly kind: 'reader'
      readonly channels: readonly string[]
      /**
       * Whether the reader is promised each event once. A plain one that keeps no ids may be sent an event again; that
       * is counted, and is no violation.
       */
      readonly once: boolean
      /** The cursor it starts from; null, and what is owed begins with its first `open`. */
      readonly from: string | null
    })
  /** A request is about to be sent, with this cursor. */
  | (OfReader & { readonly kind: 'connect'; readonly requested: string | null })
  /** The stream has opened, and this is what the hub said of it. */
  | (OfReader & {
      readonly kind: 'open'
      readonly requested: string | null
      readonly resumed: boolean
      /** Null when the hub gave the reader no place. */
      readonly id: string | null
    })
  /** The reader was handed an event. `channel` and `seq` are read out of the data, `sha` is made from it. */
  | (OfReader & {
      readonly kind: 'recv'
      readonly id: string
      readonly channel: string
      readonly seq: number
      readonly sha: string
    })
  /** A whole frame that is no event gave the reader this place. */
  | (OfReader & { readonly kind: 'mark'; readonly id: string })
  /** The reader was told that events after `from` and up to `to` may be gone. */
  | (OfReader & {
      readonly kind: 'gap'
      readonly from: string | null
      readonly to: string
      readonly reason: string
      readonly channels: readonly string[]
    })
  /** The stream held something that is not a frame of the protocol. */
  | (OfReader & { readonly kind: 'malformed'; readonly why: string; readonly text: string })
  /** The connection is over. */
  | (OfReader & {
      readonly kind: 'close'
      readonly why: string
      /** Whole event frames that arrived on it, repetitions too. */
      readonly frames?: number
      /** The id in a frame that was cut off; null when the cut frame had none. Left out when no frame was cut. */
      readonly partial?: string | null
      /** What the hub had last asked the reader to wait before it comes back. */
      readonly retryMs?: number
    })
  /** From now on the reader may read these channels, and no others. Without such a line it may read what it asked for. */
  | (OfReader & {
      readonly kind: 'allow'
      readonly channels: readonly string[]
      /** How long events of channels that were taken away may still arrive. */
      readonly graceMs?: number
    })
  /** The test has stopped the reader. */
  | (OfReader & { readonly kind: 'end' })

/** What the test knows of the run as a whole. */
export type FactLine =
  | (Timed & {
      readonly kind: 'run'
      readonly name: string
      readonly seed: number
      readonly inputs?: Readonly<Record<string, unknown>>
    })
  /** What the log promises to hold of a channel. A bound that is left out is none. Needed to judge an announced gap. */
  | (Timed & {
      readonly kind: 'window'
      /** Left out: of all channels. */
      readonly channels?: readonly string[]
      readonly maxEvents?: number | undefined
      readonly maxAgeMs?: number | undefined
      readonly maxBytes?: number | undefined
    })
  /** The log has let go of these events of a channel, whatever the window says: an operator's doing, or the test's. */
  | (Timed & { readonly kind: 'trim'; readonly channel: string; readonly throughSeq: number })
  /** The log cannot vouch for what it gave out before: it was restarted without its data, or lost part of it. */
  | (Timed & {
      readonly kind: 'branch'
      readonly why: string
      /** What was acknowledged since then may be lost, as far as it was said to be safe by no more than memory. */
      readonly mayLoseSince?: number
      /** What was called since then, and is there by now, is certainly lost. */
      readonly losesSince?: number
      /** Of all that, only events whose id names this epoch: the others were taken by a master that stays. */
      readonly epoch?: string
    })
  /**
   * What the last `branch` line announced was done between that line and this one, and every hub knows. Without it a gap is
   * taken to be about what was announced last.
   */
  | (Timed & { readonly kind: 'branched' })
  /** The past of these channels was declared void. */
  | (Timed & { readonly kind: 'invalidate'; readonly channels: readonly string[] })
  /** How ids sort: as text, or as decimal numbers. Without it only their reuse can be seen, not that they go back. */
  | (Timed & { readonly kind: 'ids'; readonly order: 'text' | 'decimal' })
  /** Something is being done to these readers, to all when left out. */
  | (Timed & { readonly kind: 'fault'; readonly what: string; readonly readers?: readonly string[] })
  /** It is over: from here the time to catch up runs. */
  | (Timed & { readonly kind: 'heal'; readonly readers?: readonly string[] })
  /**
   * For so many ms of the time since the line before, a program of the run could have run and other programs had the processors. It
   * is not charged to anybody.
   */
  | (Timed & { readonly kind: 'waited'; readonly ms: number })
  /** Nothing is published and nothing is broken any more. Readers that go on are owed all that was acknowledged. */
  | (Timed & { readonly kind: 'quiet' })
  /** What may be used. What is left out is not judged. */
  | (Timed & {
      readonly kind: 'budget'
      /** From a `heal` or `quiet` until a reader has all that was acknowledged before it. */
      readonly catchUpMs?: number
      /** Resident memory of a hub. */
      readonly rssBytes?: number
      /** Bytes that wait in a hub for one reader. */
      readonly queueBytes?: number
      /** By how much the last `rest` lines of a hub may exceed its early ones. */
      readonly growth?: Partial<Rest>
    })
  | (Timed & {
      readonly kind: 'memory'
      /** The hub or the connection that was measured. */
      readonly of: string
      readonly rssBytes?: number
      readonly queueBytes?: number
    })
  /** What this hub holds while nothing is broken and no reader is behind. */
  | (Timed & Rest & { readonly kind: 'rest'; readonly of: string })

/** What a process holds on to after a forced collection. */
export interface Rest {
  /** The JavaScript heap, and the buffers outside it that it holds. */
  readonly heapBytes: number
  /** Open files and sockets. */
  readonly descriptors: number
  /** Timers that keep the process alive. */
  readonly timers: number
}

function textOf(line: UntimedLine): string {
  return `${JSON.stringify({ t: now(), ...line })}\n`
}

/** Set by the wall clock when the process started and monotonic from there: a stepped clock does not reorder a history. */
function now(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1000) / 1000
}
