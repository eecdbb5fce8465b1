import { isAfter, latest, type Position } from '@rejoin/protocol'
import { type AgedChannel, channelsByAge } from './by-age.ts'
import type { Store } from './store.ts'

export interface Shrinking {
  /** How many bytes are to go. */
  readonly bytes: number
  /** How many events may go at most; the rest goes next time. */
  readonly atMost: number
  /** The newest position of the log. */
  readonly last: Position
  /** Lets go of the events of a channel up to a position, until so many bytes are gone. */
  letGo(channel: AgedChannel, excess: { bytes: number; through: Position }, atMost: number): LetGo
}

export interface LetGo {
  readonly bytes: number
  /** What counts against `atMost`, 1 or more. */
  readonly steps: number
  /** Where the channel stands now; undefined when it holds nothing any more. */
  readonly position: Position | undefined
}

/**
 * Lets go of the oldest events of all channels, until the log is within its budget or has let go of as many as it may.
 *
 * @returns whether it did anything: without that, another try would come to the same
 */
export function shrink(store: Store, { bytes, atMost, last, letGo }: Shrinking): boolean {
  let excess = bytes
  let left = atMost
  /** What a channel still holds must not stay while another lets go of something newer. */
  let earliest: Position | undefined
  for (const channel of channelsByAge(store)) {
    if (excess <= 0 || left <= 0 || (earliest && isAfter(channel.position, earliest))) break
    const through = latest(shortlyAfter(channel.position, last), channel.next ?? last)
    const gone = letGo(channel, { bytes: excess, through }, left)
    excess -= gone.bytes
    left -= gone.steps
    if (gone.position && (!earliest || isAfter(earliest, gone.position))) earliest = gone.position
  }
  return left < atMost
}

/**
 * A 64th of the way to the newest event. Channels whose events alternate would otherwise take turns: an event, the next channel,
 * another event, each with a search of the file.
 */
function shortlyAfter({ ms, seq }: Position, last: Position): Position {
  if (ms === last.ms) return { ms, seq: seq + Math.floor((last.seq - seq) / 64) }
  return { ms: ms + Math.floor((last.ms - ms) / 64), seq: Number.MAX_SAFE_INTEGER }
}
