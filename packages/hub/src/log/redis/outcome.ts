import { createHash } from 'node:crypto'
import { type Position, RejoinError } from '@rejoin/protocol'
import type { Appended, Stamp } from '../contract.ts'
import { channelEnded } from '../ended.ts'
import { keyReused, noRoomForKeys, type Once } from '../idempotency.ts'
import { tooMuch } from '../retained.ts'
import { isPositionText, parsePosition } from './entry.ts'
import { digestChars } from './script/script.ts'

/**
 * What became of an append, from what the script says of it. Throws what the log rejects.
 *
 * @param maxSeqAt - the largest `seq` that the log gave out where a position stands
 */
export function appendedAs(
  outcome: string,
  callAt: number,
  count: number,
  maxSeqAt: (position: Position) => number,
): Appended {
  const [what = '', first = what, at = callAt] = isPositionText(outcome) ? [outcome] : outcome.split(' ')
  const repeated = what === 'repeated'
  if (!repeated && !isPositionText(what)) throw rejection(what, outcome.slice(what.length + 1))
  const position = parsePosition(first)
  return { stamps: stampsFrom(position, Number(at), count, maxSeqAt(position)), repeated }
}

/** All entries of an append share their time, so one position tells the others. */
function stampsFrom(first: Position, at: number, count: number, maxSeq: number): Stamp[] {
  const stamps: Stamp[] = []
  for (let { ms, seq } = first; stamps.length < count; ) {
    stamps.push({ position: { ms, seq }, at })
    if (seq < maxSeq) {
      seq += 1
    } else {
      ms += 1
      seq = 0
    }
  }
  return stamps
}

function rejection(outcome: string, channel: string): RejoinError {
  switch (outcome) {
    case 'ended':
      return channelEnded(channel)
    case 'full':
      return tooMuch(channel)
    case 'key-reused':
      return keyReused()
    case 'crowded':
      return noRoomForKeys()
    default:
      return new RejoinError('The log has used all stamps of its counter. Start a new log.', { code: 'too-large' })
  }
}

/** How the script knows a publish that is not to be stored twice, and behind that its publisher. */
export function digestOf({ scope, key }: Once): string {
  // A line break is in no header and no subject, so no two pairs meet.
  return digest(`${scope}\n${key}`, digestChars) + digest(scope, 8)
}

function digest(text: string, chars: number): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, chars)
}
