import { type Branch, type History, type IdCodec, type IdFormats, isSame, origin } from '@rejoin/protocol'
import { invalidOption } from '../../../invalid-option.ts'
import { planIdSwitch } from '../../id-switch.ts'
import type { LogState } from './state.ts'

export interface StoredLog {
  readonly state: LogState
  readonly history: History
  readonly formats: IdFormats
}

/**
 * Mends a log that an earlier version opened while the clock was far ahead. That version began a branch at a position that the
 * ids of the log cannot name, and no later event had an id. Where nothing was stored behind that position, the branch goes, and
 * the log is as it was before. Else the caller has to name a codec that can name the position: the ids from there on are its ids.
 *
 * @param codec - the codec that the caller named, if any
 */
export function withinRange(found: StoredLog, codec: IdCodec | undefined, directory: string): StoredLog {
  const { state, history, formats } = found
  const at = history.findIndex((branch) => isOutOfRange(branch, formats))
  const [begun, ...later] = history.slice(at)
  if (at === -1 || !begun) return found
  const ends = [...later.map(({ fork }) => fork), state.last]
  const isEmpty = ends.every((end, index) => end && isSame(end, history[at + index]?.first ?? origin))
  if (isEmpty) {
    return { formats, history: history.slice(0, at), state: { ...state, last: begun.fork ?? origin } }
  }
  const planned = codec && planIdSwitch(formats, { codec }, { lasting: true })
  const switched = planned?.isNew ? planned.since(begun.first) : formats
  if (!isOutOfRange(begun, switched)) return { ...found, formats: switched }
  const { name } = formats.list.at(-1)?.codec ?? { name: 'its' }
  throw invalidOption(
    `The log in ${directory} took events while the clock of the machine was far ahead, at ${new Date(begun.first.ms).toISOString()}. ` +
      `Its ${name} ids cannot name that time. Open it with ulid() once (rejoin serve --ids ulid): events from there on ` +
      'have ULIDs, and all older ids stay good. Or put a backup from before that time back.',
  )
}

/** Whether a branch begins later than the ids of the log can name. */
export function isOutOfRange({ first }: Branch, { range }: IdFormats): boolean {
  return first.ms > range.maxMs
}
