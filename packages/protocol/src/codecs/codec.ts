import type { ClockKind } from '../clock.ts'
import { RejoinError } from '../errors.ts'
import type { Branch } from '../history.ts'
import type { Position } from '../position.ts'

/**
 * Renders positions of a log as text and reads them back, without looking anything up.
 *
 * Duties: `decode(encode(p, branch))` gives `p` and `mark(branch)` back, and nothing but text that `encode` can make
 * decodes: an id with a second spelling would break the dedup of clients, which compare text. The text is one that may
 * stand as an id (§2.6), with 5 bytes to spare for a version; a client could not send back any other.
 */
export interface IdCodec {
  /** Tells this codec from the others of a log. Two settings of one codec need two versions (`IdFormat.version`). */
  readonly name: string
  readonly clock: ClockKind
  /** The largest `seq` the text has room for. */
  readonly maxSeq: number
  /** The earliest `ms` the text can name, when that is not 0. */
  readonly minMs?: number
  /** Set when ids are only told apart by a log that remembers its branches across restarts. */
  readonly lasting?: boolean
  /** What an id's text holds of its branch. */
  mark(branch: Branch): string
  encode(position: Position, branch: Branch): string
  /** Never throws, whatever the text. */
  decode(text: string): DecodedId | undefined
}

export interface DecodedId {
  readonly position: Position
  readonly mark: string
}

/** Largest `ms` of the codecs that give it 48 bits: the year 10889. */
export const maxMs48 = 2 ** 48 - 1

/** Thrown by `encode` for a position its text has no room for; cut short, two events would get one id. */
export function refusePosition(codec: string, { ms, seq }: Position): never {
  throw new RejoinError(
    `Position ${ms}, ${seq} does not fit an id of the codec ${codec}. Give the log's clock the codec's range, and check that the machine's time is right.`,
    { code: 'invalid-option' },
  )
}
