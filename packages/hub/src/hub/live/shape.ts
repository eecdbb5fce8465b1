import { encodeEvent } from '@rejoin/protocol'
import { readJson } from '../json-text.ts'
import type { Frame } from './frame.ts'
import { keptBytes } from './kept-bytes.ts'

/**
 * What the frame of an event has besides the event (§4.15). `channel` adds the channel, in a field that browsers ignore.
 * `envelope` adds the id and the channel, inside the data.
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

/** Adds the bytes of `frames` to `parts`, for readers that asked for this shape. */
export function addParts(frames: readonly Frame[], shape: Shape | undefined, parts: Uint8Array[]): void {
  // Most readers ask for no shape. A list of pieces for each of their frames would be most of what a replay allocates.
  if (shape === undefined) for (const frame of frames) parts.push(frame.bytes)
  else for (const frame of frames) parts.push(...shapedParts(frame, shape))
}

/** The envelope of a frame, made once for all readers, and let go with the frame. */
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
