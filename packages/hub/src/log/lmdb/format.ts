import type { History, IdCodec, IdFormats } from '@rejoin/protocol'
import { RejoinError } from '@rejoin/protocol'
import { openFormats, type StoredFormat, storeFormats } from '../stored-formats.ts'
import { ByteWriter, unseal } from './bytes.ts'

/** How the file is written, how its ids look, and the branches of its history. */
export interface LogFormat {
  readonly formats: IdFormats
  readonly history: History
}

/** As it is kept. Written when the log is made, when a branch opens, and when the ids change. */
interface StoredLogFormat {
  readonly version: number
  /** The formats of the ids, oldest first. A folder whose ids never changed may have `ids` instead, the only one of them. */
  readonly formats?: readonly StoredFormat[]
  readonly ids?: string
  readonly history: History
}

/** Of the layout of the store. One written by a later Rejoin is rejected, because it would be misread. */
const formatVersion = 2

export function sealFormat(key: Uint8Array, { formats, history }: LogFormat): Buffer {
  const stored: StoredLogFormat = { version: formatVersion, formats: storeFormats(formats.list), history }
  writer.text(JSON.stringify(stored))
  return writer.seal(key)
}

/**
 * Rejects what this version cannot continue, and says what can be done about it.
 *
 * @param codec - that the log is opened with, if one was named
 */
export function openFormat(key: Uint8Array, sealed: Buffer, directory: string, codec: IdCodec | undefined): LogFormat {
  const reader = unseal(key, sealed)
  if (!reader) {
    refuse(`The log in ${directory} is damaged where its format stands. Restore it, or choose another folder.`)
  }
  const { version, formats, ids = '', history } = JSON.parse(reader.text()) as StoredLogFormat
  if (version !== formatVersion) {
    refuse(
      `The log in ${directory} has format ${version}, and this Rejoin writes format ${formatVersion}. ` +
        'Use the version that made it, or choose another folder.',
    )
  }
  return { formats: openFormats(formats ?? [{ ids }], codec, `The log in ${directory}`), history }
}

const writer = new ByteWriter()

function refuse(message: string): never {
  throw new RejoinError(message, { code: 'invalid-option' })
}
