import { createHash } from 'node:crypto'
import { type Position, RejoinError } from '@rejoin/protocol'
import type { Appended, Place } from '../contract.ts'
import { channelEnded } from '../ended.ts'
import { keyReused, noRoomForKeys, type Once } from '../idempotency.ts'
import { tooMuch } from '../retained.ts'
import { isPlace, parsePlace } from './entry.ts'
import { digestChars } from './script/script.ts'

/** What became of an append, from what the script says of it. Throws what the log refuses. */
export function appendedAs(outcome: string, callAt: number, count: number, maxSeq: number): Appended {
  const [what = '', first = what, at = callAt] = isPlace(outcome) ? [outcome] : outcome.split(' ')
  const repeated = what === 'repeated'
  if (!repeated && !isPlace(what)) throw refusal(what, outcome.slice(what.length + 1))
  return { places: placesFrom(parsePlace(first), Number(at), count, maxSeq), repeated }
}

/** All entries of an append share their time, so one place tells the others. */
function placesFrom(first: Position, at: number, count: number, maxSeq: number): Place[] {
  const places: Place[] = []
  for (let { ms, seq } = first; places.length < count; ) {
    places.push({ position: { ms, seq }, at })
    if (seq < maxSeq) {
      seq += 1
    } else {
      ms += 1
      seq = 0
    }
  }
  return places
}

function refusal(outcome: string, channel: string): RejoinError {
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
      return new RejoinError('The log has used all places of its counter. Start a new log.', { code: 'too-large' })
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
