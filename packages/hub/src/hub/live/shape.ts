import { encodeEvent } from '@rejoin/protocol'
import { readJson } from '../json-text.ts'
import type { Frame } from './frame.ts'
import { keptBytes } from './kept-bytes.ts'

/**
 * What event frames say besides the event (§4.15): with `channel` the channel, in a field of its own that browsers pass
 * over; with `envelope` the id and the channel, inside the data.
 */
export type Shape = 'channel' | 'envelope'

/** The bytes of a frame for readers that asked for this shape, in pieces. */
export function shapedParts(frame: Frame, shape: Shape | undefined): readonly Uint8Array[] {
  if (shape === undefined) return [frame.bytes]
  if (shape === 'channel') return [Buffer.from(`channel: ${frame.channel}\n`), frame.bytes]
  let bytes = envelopes.get(frame)
  if (!bytes) {
    bytes = keptBytes(inEnvelope(frame))
    envelopes.set(frame, bytes)
  }
  return [bytes]
}

/** Made once for all readers that want it, and gone with its frame. */
const envelopes = new WeakMap<Frame, Uint8Array>()

function inEnvelope({ bytes, channel, type }: Frame): string {
  const lines = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString().split('\n')
  const valuesOf = (field: string) =>
    lines.flatMap((line) => (line.startsWith(field) ? [line.slice(field.length)] : []))
  const [id = ''] = valuesOf('id: ')
  const text = valuesOf('data: ').join('\n')
  const isText = valuesOf('content: ').length > 0 || !readJson(text)
  const said = isText ? `"text":${JSON.stringify(text)}` : `"data":${text}`
  return encodeEvent({ id, type, data: `{"id":${JSON.stringify(id)},"channel":${JSON.stringify(channel)},${said}}` })
}
