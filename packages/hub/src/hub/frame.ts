import { encodeEvent, type Position } from '@rejoin/protocol'
import type { LogEvent } from '../log/contract.ts'

/** An event as it goes out, encoded once for everybody. */
export interface Frame {
  readonly position: Position
  readonly channel: string
  readonly type: string
  readonly bytes: Uint8Array
}

export function encodeFrame(event: LogEvent, id: string): Frame {
  const { position, channel, type, data } = event
  return { position, channel, type, bytes: Buffer.from(encodeEvent({ id, type, data })) }
}
