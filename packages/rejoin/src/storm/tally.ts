import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'

/** What happened to all readers of a storm together. */
export interface Tally {
  /** Events that readers got, each counted once per reader. */
  delivered: number
  /** Connections that the storm cut. */
  cuts: number
  /** Streams that a reader came back to with its cursor. */
  returns: number
  /** Streams that ended by themselves, without `close`. */
  drops: number
  /** Streams that the hub ended with `close`, by reason. */
  readonly closes: Map<string, number>
  /** Requests that were answered with another status than 200, by status. */
  readonly refusals: Map<number, number>
  /** Connections that came to nothing, by error code. */
  readonly failures: Map<string, number>
  /** Frames `sync-required`. */
  gaps: number
  /** Returns whose cursor the hub did not see. */
  unseenCursors: number
  /** Events that were not published for the reader that got them, or were changed on the way. */
  foreign: number
  /** From the publish to the arrival at a reader that was up to date by then and is not slow. */
  readonly delay: Times
  /** From the attempt to return until the reader had everything that was confirmed by then; not of slow readers. */
  readonly catchUp: Times
  /** The first few faults, for a person who looks for the cause. */
  readonly examples: Example[]
}

export interface Example {
  readonly fault: 'lost' | 'doubled' | 'disordered' | 'foreign'
  readonly reader: number
  readonly selector: string
  /** The number of the event in the storm, where there is one. */
  readonly event?: number
  /** The id that the event came with. */
  readonly id?: string
}

export function createTally(): Tally {
  return {
    ...{ delivered: 0, cuts: 0, returns: 0, drops: 0, gaps: 0, unseenCursors: 0, foreign: 0 },
    ...{ closes: new Map(), refusals: new Map(), failures: new Map(), examples: [] },
    ...{ delay: createTimes(), catchUp: createTimes() },
  }
}

export function countIn<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

/** Keeps the first ones only: whatever broke once is likely to have broken the rest. */
export function addExample({ examples }: Pick<Tally, 'examples'>, example: Example): void {
  if (examples.length < maxExamples) examples.push(example)
}

const maxExamples = 5

/** A distribution of durations, in a bounded memory. */
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
    // In microseconds; a histogram counts from 1 on.
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
