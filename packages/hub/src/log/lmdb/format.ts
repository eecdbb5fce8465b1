import type { History, IdCodec } from '@rejoin/protocol'
import { RejoinError } from '@rejoin/protocol'
import { idsOf } from '../ids-of.ts'
import { ByteWriter, unseal } from './bytes.ts'

/** How the file is written, how its ids look, and the branches of its history. Written when it is made and when one opens. */
export interface LogFormat {
  readonly version: number
  readonly ids: string
  readonly history: History
}

/** Of the layout of the store. One written by a later Rejoin is refused, because it would be misread. */
export const formatVersion = 2

export function sealFormat(key: Uint8Array, format: LogFormat): Buffer {
  writer.text(JSON.stringify(format))
  return writer.seal(key)
}

/** Refuses what this version cannot continue, and says what can be done about it. */
export function openFormat(key: Uint8Array, sealed: Buffer, directory: string, codec: IdCodec): LogFormat {
  const reader = unseal(key, sealed)
  if (!reader) {
    refuse(`The log in ${directory} is damaged where its format stands. Restore it, or choose another folder.`)
  }
  const format = JSON.parse(reader.text()) as LogFormat
  if (format.version !== formatVersion) {
    refuse(
      `The log in ${directory} has format ${format.version}, and this Rejoin writes format ${formatVersion}. ` +
        'Use the version that made it, or choose another folder.',
    )
  }
  if (format.ids !== idsOf(codec)) {
    refuse(
      `The log in ${directory} writes ids as ${format.ids}, and was opened for ${idsOf(codec)}. ` +
        'One event has one id for ever: open it with the codec it was made with, or choose another folder.',
    )
  }
  return format
}

const writer = new ByteWriter()

function refuse(message: string): never {
  throw new RejoinError(message, { code: 'invalid-option' })
}
