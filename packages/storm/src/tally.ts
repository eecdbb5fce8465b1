import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import type { LimitReq } from './limit-req.ts'

/** The counts of a storm, over all its readers. */
export interface Tally {
  /** Events that readers got, each counted once per reader. */
  delivered: number
  /** Connections that the storm cut. */
  cuts: number
  /** Streams that a reader opened with its cursor. */
  returns: number
  /** Streams that ended without a cut and without `close`. */
  drops: number
  /** Streams that the hub ended with `close`, by reason. */
  readonly closes: Map<string, number>
  /** Requests that were answered with something else than a stream, by status. */
  readonly rejections: Map<number, number>
  /** Requests for a stream that `limit_req` of nginx delayed or rejected. */
  readonly limitReq: Record<LimitReq, number>
  /** Connections that failed before their stream began, by error code. */
  readonly failures: Map<string, number>
  /** The number of `sync-required` frames. */
  gaps: number
  /** Returns whose cursor the hub did not see. */
  unseenCursors: number
  /** Events that were not published for their reader, or were changed on the way. */
  foreign: number
  /** Returns without a cursor: no frame of the streams before had an id. */
  cursorless: number
  /** Times from the publish of an event to its arrival, for readers that were up to date and are not slow. */
  readonly delay: Times
  /** Times from a return until the reader has all events that were confirmed when it returned. Slow readers are left out. */
  readonly catchUp: Times
  /** The first few faults, for a person who looks for the cause. */
  readonly examples: Example[]
}

/** Counts of what a hub must not do. */
export interface Faults {
  /** Events that never arrived, and that no gap announced. */
  readonly lost: number
  readonly doubled: number
  readonly disordered: number
  readonly foreign: number
  readonly cursorless: number
}

export interface Example {
  readonly fault: keyof Faults
  readonly reader: number
  readonly selector: string
  /** The number of the event in the storm, if it has one. */
  readonly event?: number
  /** The id that the event came with. */
  readonly id?: string
}

export function createTally(): Tally {
  return {
    delivered: 0,
    cuts: 0,
    returns: 0,
    drops: 0,
    closes: new Map(),
    rejections: new Map(),
    limitReq: { delayed: 0, rejected: 0 },
    failures: new Map(),
    gaps: 0,
    unseenCursors: 0,
    foreign: 0,
    cursorless: 0,
    delay: createTimes(),
    catchUp: createTimes(),
    examples: [],
  }
}

export function countIn<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

/** Keeps the first five examples only: the others most likely have the same cause. */
export function addExample({ examples }: Pick<Tally, 'examples'>, example: Example): void {
  if (examples.length < maxExamples) examples.push(example)
}

const maxExamples = 5

/** A distribution of durations, in bounded memory. */
export interface Times {
  add(ms: number): void
  summary(): TimesSummary | undefined
}

export interface TimesSummary {
  readonly count: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

function createTimes(): Times {
  const histogram: RecordableHistogram = createHistogram()
  return {
    // Recorded in microseconds, because a histogram takes whole numbers from 1 on.
    add: (ms) => histogram.record(Math.max(1, Math.round(ms * 1000))),
    summary: () =>
      histogram.count === 0
        ? undefined
        : {
            count: histogram.count,
            p50: histogram.percentile(50) / 1000,
            p99: histogram.percentile(99) / 1000,
            max: histogram.max / 1000,
          },
  }
}
