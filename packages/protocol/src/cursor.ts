import type { DecodedId, IdCodec } from './codecs/codec.ts'
import { RejoinError } from './errors.ts'
import type { GapReason } from './gap-reason.ts'
import { type Branch, branchAt, type History, survivorFrom } from './history.ts'
import type { IdFormats } from './id-format.ts'
import { isAfter, isSame, type Position } from './position.ts'

/** What it takes to turn positions of a log into ids and back. */
export interface IdContext {
  readonly formats: IdFormats
  readonly history: History
}

export type CursorVerdict =
  | { readonly ok: true; readonly position: Position }
  | {
      readonly ok: false
      readonly reason: GapReason
      /**
       * With `epoch`: where the reader can read on all the same. The log knows which channels lost something between here and
       * the cursor, and says so of them with the read.
       */
      readonly survivor?: Position
    }

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
  const survivor = survivorOfId(log.history, id)
  if (!survivor) return gap('epoch')
  if (!isSame(survivor, id.position)) return { ...gap('epoch'), survivor }
  return isAfter(id.position, log.head) ? gap('ahead') : { ok: true, position: id.position }
}

/**
 * The id of a position of this log; called once per event. Throws for a position before the log's first branch: it is
 * another log's.
 */
export function renderId(position: Position, { formats, history }: IdContext): string {
  const branch = branchAt(history, position)
  if (!branch) {
    throw new RejoinError(
      `Position ${position.ms}, ${position.seq} is before the first of this log. Render positions of the log itself only.`,
      { code: 'invalid-option' },
    )
  }
  return formats.encode(position, branch)
}

function survivorOfId(history: History, { position, mark, codec }: MarkedId): Position | undefined {
  // A mark can come back: a snowflake tag after 1,024 branches. The one meant is the newest that was open by then.
  const isMeant = (branch: Branch) => !isAfter(branch.first, position) && codec.mark(branch) === mark
  const index = history.findLastIndex(isMeant)
  return index === -1 ? undefined : survivorFrom(history, index, position)
}

type MarkedId = DecodedId & { readonly codec: IdCodec }

function gap(reason: GapReason) {
  return { ok: false, reason } as const
}
