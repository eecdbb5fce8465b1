import { type Branch, type History, type IdCodec, type IdFormats, isSame, origin } from '@rejoin/protocol'
import { invalidOption } from '../../../invalid-option.ts'
import { planIdSwitch } from '../../id-switch.ts'
import { idsOf, openFormats, type StoredFormat, storeFormats } from '../../stored-formats.ts'
import { ByteWriter, unseal } from './bytes.ts'
import type { LogState } from './state.ts'

/** The formats of the log's ids, and the branches of its history. */
export interface LogFormat {
  readonly formats: IdFormats
  readonly history: History
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
}

/** The version of the store's layout. This Rejoin rejects a store with another version, because it would misread it. */
const formatVersion = 2

export function sealFormat(key: Uint8Array, { formats, history }: LogFormat): Buffer {
  const stored: StoredLogFormat = { version: formatVersion, formats: storeFormats(formats.list), history }
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
  const { version, formats, ids = '', history } = JSON.parse(reader.text()) as StoredLogFormat
  if (version !== formatVersion) {
    throw invalidOption(
      `The log in ${directory} has format ${version}, and this Rejoin writes format ${formatVersion}. ` +
        'Use the version that made it, or choose another folder.',
    )
  }
  const stored = formats ?? [{ ids }]
  const name = `The log in ${directory}`
  if (codec && !stored.some((format) => format.ids === idsOf(codec))) {
    const own = openFormats(stored, undefined, name)
    // Another codec is welcome where the log's own cannot go on.
    if (history.some((branch) => isOutOfRange(branch, own))) return { formats: own, history }
  }
  return { formats: openFormats(stored, codec, name), history }
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
function isOutOfRange({ first }: Branch, { range }: IdFormats): boolean {
  return first.ms > range.maxMs
}
