import { RejoinError } from '../errors.ts'
import type { Branch } from '../history.ts'
import type { Position } from '../position.ts'
import type { PositionClockKind } from '../position-clock.ts'

/**
 * Renders positions of a log as text and reads them back, without a lookup.
 *
 * Duties: `decode(encode(p, branch))` returns `p` and `mark(branch)`. `decode` accepts only text that `encode` can
 * make: a second spelling of an id would break the dedup of clients, which compare text. The text must be valid as an
 * id (§2.6), with 5 bytes to spare for the version prefix: a client could not send any other text back.
 */
export interface IdCodec {
  /** Tells the codecs of one log apart. Two settings of one codec need two versions (`IdFormat.version`). */
  readonly name: string
  readonly clock: PositionClockKind
  /** The largest `seq` that fits into the text. */
  readonly maxSeq: number
  /** The earliest `ms` that the text can name; 0 when left out. */
  readonly minMs?: number
  /** The latest `ms` that the text can name; 2^48 - 1, the year 10889, when left out. */
  readonly maxMs?: number
  /**
   * Set when the log must remember its branches across restarts: without that, ids of two branches could look the same.
   */
  readonly lasting?: boolean
  /** The part of an id's text that names its branch. */
  mark(branch: Branch): string
  encode(position: Position, branch: Branch): string
  /** Undefined for text that is no id of this codec. Never throws. */
  decode(text: string): DecodedId | undefined
}

export interface DecodedId {
  readonly position: Position
  readonly mark: string
}

/** Largest `ms` of the codecs that give it 48 bits: the year 10889. */
export const maxMs48 = 2 ** 48 - 1

/** Throws for a position that does not fit into the text of an id. Cut short, two positions would get one id. */
export function rejectPosition(codec: string, { ms, seq }: Position): never {
  throw new RejoinError(
    `Position ${ms}, ${seq} does not fit an id of the codec ${codec}. Give the log's clock the codec's range, and check that the machine's time is right.`,
    { code: 'invalid-option' },
  )
}
