import type { History, IdCodec, IdFormats } from '@rejoin/protocol'
import { invalidOption } from '../../../invalid-option.ts'
import { idsOf, openFormats, type StoredFormat, storeFormats } from '../../stored-formats.ts'
import { ByteWriter, unseal } from './bytes.ts'
import { isOutOfRange } from './out-of-range.ts'

/** The formats of the log's ids, and the branches of its history. */
export interface LogFormat {
  readonly formats: IdFormats
  readonly history: History
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
    throw invalidOption(
      `The log in ${directory} is damaged where its format stands. Restore it, or choose another folder.`,
    )
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
