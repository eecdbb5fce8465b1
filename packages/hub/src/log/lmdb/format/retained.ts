import { origin } from '@rejoin/protocol'
import type { LogEvent } from '../../contract.ts'
import { ByteWriter, unseal } from './bytes.ts'
import { retainedKeyOf } from './keys.ts'
import { readStoredType, storedTypeOf } from './stored-type.ts'

/** The newest event of a key, as it is stored beside the records of its channel. */
export function sealRetained(key: Uint8Array, event: LogEvent): Buffer {
  const { position, at, data } = event
  writer.position(position)
  writer.signed(at - position.ms)
  writer.text(storedTypeOf(event))
  return writer.seal(key, data)
}

const writer = new ByteWriter()

/** Undefined when the value is damaged. */
export function openRetained(key: Uint8Array, sealed: Buffer, channel: string): LogEvent | undefined {
  const reader = unseal(key, sealed)
  if (!reader) return undefined
  const position = reader.position()
  const at = position.ms + reader.signed()
  const stored = readStoredType(reader.text())
  const data = sealed.toString('utf8', reader.at)
  return { kind: 'event', channel, key: retainedKeyOf(key), ...stored, data, position, at, previous: origin }
}
