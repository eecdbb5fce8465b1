import type { Position } from '@rejoin/protocol'
import type { LogEvent, NewEvent, Stamp } from './contract.ts'

/**
 * An event as a log hands it out. Two literals, and no spread of what may be absent: an object that was made by a spread is slow
 * to make, and slow to read for as long as it lives.
 */
export function logEvent(
  channel: string,
  { type, content }: Pick<NewEvent, 'type' | 'content'>,
  data: string,
  { position, at }: Stamp,
  previous: Position,
): LogEvent {
  return content === undefined
    ? { kind: 'event', channel, type, data, position, at, previous }
    : { kind: 'event', channel, type, data, position, at, previous, content }
}
