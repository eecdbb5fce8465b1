import type { DecodedId, IdCodec } from './codecs/codec.ts'
import { RejoinError } from './errors.ts'
import type { GapReason } from './gap-reason.ts'
import { type Branch, branchAt, type History, survivorFrom } from './history.ts'
import type { IdFormats } from './id-format.ts'
import { isAfter, isSame, type Position } from './position.ts'

/** What `renderId` and `judgeCursor` need to know of a log. */
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
       * Only with `epoch`: the position from which the reader can still read on. The log knows which channels lost
       * events between this position and the cursor, and the read reports these channels.
       */
      readonly survivor?: Position
    }

/**
 * Judges the cursor of a reader that returns (§3.2). Never throws. `expired` is not decided here but with the read
 * after the cursor, because a trim can come in between.
 *
 * @param cursor - whatever the reader sent; a value that is not one id is `unknown-id`
 * @param log - `head` must be the newest position of the log, and not of one hub that may be behind its log: a cursor
 * that is only ahead of that hub is no gap
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
 * The id of a position of this log; called once per event. Throws for a position before the log's first branch, which
 * is a position of another log.
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
  // Marks repeat: a snowflake tag does after 1,024 branches. The id means the newest branch with its mark that had
  // opened by its position.
  const isMeant = (branch: Branch) => !isAfter(branch.first, position) && codec.mark(branch) === mark
  const index = history.findLastIndex(isMeant)
  return index === -1 ? undefined : survivorFrom(history, index, position)
}

type MarkedId = DecodedId & { readonly codec: IdCodec }

function gap(reason: GapReason) {
  return { ok: false, reason } as const
}
