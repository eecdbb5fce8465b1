import type { DecodedId, IdCodec } from './codecs/codec.ts'
import { RejoinError } from './errors.ts'
import type { GapReason } from './gap-reason.ts'
import { branchAt, type History } from './history.ts'
import type { IdFormats } from './id-format.ts'
import { comparePositions, isAfter, type Position } from './position.ts'

/** What it takes to turn places of a log into ids and back. */
export interface IdContext {
  readonly formats: IdFormats
  readonly history: History
}

export type CursorVerdict =
  | { readonly ok: true; readonly position: Position }
  | { readonly ok: false; readonly reason: GapReason }

/**
 * Judges what a reader came back with (§3.2), all but `expired`: that is decided with the read of what follows the
 * cursor, since a trim can fall in between.
 *
 * @param cursor - whatever the reader sent. Never throws; anything that is not one id is `unknown-id`.
 * @param log - `head` is the newest position of the log, not of one node that may be behind it: a cursor that is ahead
 *   of the node alone is no gap.
 */
export function judgeCursor(cursor: unknown, log: IdContext & { readonly head: Position }): CursorVerdict {
  if (typeof cursor !== 'string') return gap('unknown-id')
  const id = log.formats.decode(cursor)
  if (typeof id === 'string') return gap(id)
  if (!survived(log.history, id)) return gap('epoch')
  return isAfter(id.position, log.head) ? gap('ahead') : { ok: true, position: id.position }
}

/**
 * The id of a position of this log; called once per event. Throws for a position before the log's first branch: it is
 * another log's.
 */
export function renderId(position: Position, { formats, history }: IdContext): string {
  const newest = history.at(-1)
  const branch = newest && comparePositions(position, newest.first) >= 0 ? newest : branchAt(history, position)
  if (!branch) {
    throw new RejoinError(
      `Position ${position.ms}, ${position.seq} is before the first of this log. Render positions of the log itself only.`,
      { code: 'invalid-option' },
    )
  }
  return formats.encode(position, branch)
}

function survived(history: History, { position, mark, codec }: DecodedId & { readonly codec: IdCodec }): boolean {
  for (let at = history.length - 1; at >= 0; at--) {
    const branch = history[at]!
    // A mark can come back: a snowflake tag after 1,024 branches. The one meant is the newest that was open by then.
    if (!isAfter(branch.first, position) && codec.mark(branch) === mark) return true
    // Every fork on the way to it counts, not only the next: a second loss can reach back behind the first.
    if (branch.fork === undefined || isAfter(position, branch.fork)) return false
  }
  return false
}

function gap(reason: GapReason): CursorVerdict {
  return { ok: false, reason }
}
