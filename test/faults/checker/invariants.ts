/** What has to hold in every history, whatever was broken meanwhile. Each is a word of the promise, turned into a check. */
export const invariants = {
  'lost-write': 'an acknowledged event reaches every reader that is owed it and stays to the end',
  'unannounced-gap': 'no reader passes over an event without being told',
  'false-gap': 'no reader is told of a gap while everything is still held',
  duplicate: 'no event reaches a reader twice',
  order: 'every reader gets events in the order in which they were appended, and all in the same',
  'inconsistent-id': 'an event has one id and the same bytes for everybody',
  'id-reuse': 'no id is given to two events, and ids rise with time',
  'unknown-twice': 'a publish without an answer, or sent again, is in the log at most once',
  phantom: 'nobody gets an event that was not published, or whose publish was rejected',
  'private-leak': 'no reader gets an event of a channel that it did not ask for or may not read',
  'torn-frame': 'streams hold whole frames only, and a frame that was cut off counts for nothing',
  memory:
    'hubs and their queues stay within their budget, and hubs hold hardly more after the last fault than after the first few',
  liveness: 'every reader has caught up within the budget of time once the faults are over',
} as const

export type Invariant = keyof typeof invariants

/** Something that must not happen and did. */
export interface Finding {
  readonly invariant: Invariant
  readonly message: string
  /** The lines that show it. */
  readonly lines: readonly LineNumber[]
  /** How many events, ids or moments it stands for. */
  readonly count: number
}

/** A line of the history, counted from 0 over all its sources. */
export type LineNumber = number
