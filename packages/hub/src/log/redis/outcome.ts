import { createHash } from 'node:crypto'
import { type Position, RejoinError } from '@rejoin/protocol'
import type { Appended, Stamp } from '../contract.ts'
import { channelEnded } from '../ended.ts'
import { keyReused, noRoomForKeys, type Once } from '../idempotency.ts'
import { tooMuch } from '../retained.ts'
import { isPositionText, parsePosition } from './entry.ts'
import { digestChars } from './script/script.ts'

/**
 * Reads the outcome of an append, as the script writes it. Throws the rejection of an append that was rejected.
 *
 * @param maxSeqAt - the largest `seq` of the log at the time of a position
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

/** The entries of an append stand next to each other and share their time, so the first position tells the others. */
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

/** The digest of an idempotency key, by which the script recognises a repeated publish, followed by a tag of the publisher. */
export function digestOf({ scope, key }: Once): string {
  // No header and no subject contains a line break, so no two pairs of scope and key have the same text.
  return digest(`${scope}\n${key}`, digestChars) + digest(scope, 8)
}

function digest(text: string, chars: number): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, chars)
}
