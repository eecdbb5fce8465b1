import { type Branch, type History, type IdCodec, type IdFormats, isSame, origin } from '@rejoin/protocol'
import { invalidOption } from '../../../invalid-option.ts'
import { planIdSwitch } from '../../id-switch.ts'
import { idsOf, openFormats, type StoredFormat, storeFormats } from '../../stored-formats.ts'
import { ByteWriter, unseal } from './bytes.ts'
import type { Marks } from './marks.ts'
import type { LogState } from './state.ts'

/** The formats of the log's ids, the branches of its history, and the losses that are known. */
export interface LogFormat {
  readonly formats: IdFormats
  readonly history: History
  readonly marks: Marks
}

export interface StoredLog extends LogFormat {
  readonly state: LogState
}

/** The stored form. It is written when the log is made, when a branch opens, and when the ids change. */
interface StoredLogFormat {
  readonly version: number
  /** The formats of the ids, oldest first. A folder of an earlier version has `ids` instead, with its only format. */
  readonly formats?: readonly StoredFormat[]
  readonly ids?: string
  readonly history: History
  /** Left out when there are none. */
  readonly marks?: Marks
}

/**
 * The versions of the store's layout: with marks, and without. This Rejoin rejects a store with another version, because it would
 * misread it. An earlier one rejects a log with marks: it would lead readers over them.
 */
const markedVersion = 3
const plainVersion = 2

export function sealFormat(key: Uint8Array, { formats, history, marks }: LogFormat): Buffer {
  const branches = { formats: storeFormats(formats.list), history }
  const stored: StoredLogFormat =
    marks.length > 0 ? { version: markedVersion, ...branches, marks } : { version: plainVersion, ...branches }
  writer.text(JSON.stringify(stored))
  return writer.seal(key)
}

/**
 * Rejects a log that this version cannot continue, and says what to do about it.
 *
 * @param codec - the codec that the caller named, if any
 */
export function openFormat(key: Uint8Array, sealed: Buffer, directory: string, codec: IdCodec | undefined): LogFormat {
  const reader = unseal(key, sealed)
  if (!reader) {
    throw invalidOption(`The log in ${directory} has a damaged format. Restore it, or choose another folder.`)
  }
  const { version, formats, ids = '', history, marks = [] } = JSON.parse(reader.text()) as StoredLogFormat
  if (version !== plainVersion && version !== markedVersion) {
    throw invalidOption(
      `The log in ${directory} has format ${version}, and this Rejoin reads formats ${plainVersion} and ${markedVersion}. ` +
        'Use the version that made it, or choose another folder.',
    )
  }
  const stored = formats ?? [{ ids }]
  const name = `The log in ${directory}`
  if (codec && !stored.some((format) => format.ids === idsOf(codec))) {
    const own = openFormats(stored, undefined, name)
    // Another codec is welcome where the log's own cannot go on.
    if (history.some((branch) => isOutOfRange(branch, own))) return { formats: own, history, marks }
  }
  return { formats: openFormats(stored, codec, name), history, marks }
}

const writer = new ByteWriter()

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
    return { ...found, history: history.slice(0, at), state: { ...state, last: begun.fork ?? origin } }
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
function isOutOfRange({ first }: Branch, { range }: IdFormats): boolean {
  return first.ms > range.maxMs
}
