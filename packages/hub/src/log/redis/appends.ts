import { createHash } from 'node:crypto'
import { type Position, RejoinError } from '@rejoin/protocol'
import type { Appended, AppendOptions, NewEvent, Stamp } from '../contract.ts'
import { channelEnded } from '../ended.ts'
import { keyReused, noRoomForKeys, type Once } from '../idempotency.ts'
import { tooMuch } from '../retained.ts'
import { isPositionText, parsePosition, pushEntry, pushPlain } from './entry.ts'
import { digestChars, slots } from './script/script.ts'

/**
 * Sends the appends of one turn of the event loop, and all that come while a call is under way, in one call. So they share the
 * cost of a call in Redis, in this hub, and at the tails of all hubs. Each append keeps an outcome of its own.
 */
export interface Appends<Appended> {
  /** Rejects when the call fails, and when `read` throws. */
  add(entries: readonly NewEvent[], once: AppendOptions['once'], digest: string): Promise<Appended>
  /** Sends the gathered appends now, so that the caller's next step comes after them. */
  flush(): void
  /** Resolves when no call is under way. */
  settled(): Promise<void>
  /** The number of appends without an answer. */
  readonly waiting: number
}

export interface Answers {
  /** When Redis ran the call. */
  readonly at: number
  /** One for each append, in their order: the position of its first entry, or a word for another outcome and its details. */
  readonly outcomes: readonly string[]
}

// The bounds of one call. With fewer entries, each would pay more of the call. With more, Redis and the hub would wait for each
// other instead of working at the same time. The bounds also keep Redis busy for some milliseconds at most. A larger batch of one
// publisher is a call of its own.
const most = { entries: 128, bytes: 512 * 1024 }

// Most calls take a millisecond or two. A call that takes longer than this does not hold up the next one.
const holdMs = 5

// So many calls without an answer mean that Redis is behind, for example because it writes its file anew. A larger call costs
// Redis a quarter less per event, because more events of a channel share the work, so Redis catches up. A Redis that is only
// far away looks the same, so the hub holds an append back only a little longer.
const behind = { calls: 2, entries: 512, holdMs: 25 }

// The script knows a repeated call by its number, for as many calls as it has slots. With half as many calls under way, no slot
// of a call without an answer is overwritten.
const mostCalls = slots / 2

/**
 * @param read - turns the outcome of an append into its result, or throws the rejection for its caller
 */
export function createAppends<Appended>(
  send: (number: string, args: readonly string[]) => Promise<Answers>,
  read: (outcome: string, at: number, entries: readonly NewEvent[]) => Appended,
): Appends<Appended> {
  let gathered: Gathered<Appended> = nothingYet()
  let calls = 0
  let waiting = 0
  let hold: ReturnType<typeof setTimeout> | undefined
  /** The gathered appends have waited for `holdMs`, and still wait because Redis is behind. */
  let overdue = false
  const underWay = new Set<Promise<void>>()
  /** Calls that wait for a free slot. */
  let queued: Gathered<Appended>[] = []

  function sendOrHold(): void {
    if (underWay.size === 0) flush()
    else hold ??= setTimeout(flushOrHoldOn, holdMs)
  }

  function flushOrHoldOn(): void {
    overdue = isBehind()
    if (overdue) hold = setTimeout(flush, behind.holdMs - holdMs)
    else flush()
  }

  function isBehind(): boolean {
    return underWay.size >= behind.calls
  }

  function flush(): void {
    clearTimeout(hold)
    hold = undefined
    overdue = false
    if (gathered.takers.length === 0) return
    const full = gathered
    gathered = nothingYet()
    if (underWay.size < mostCalls) sendOff(full)
    else queued.push(full)
  }

  function sendOff({ args, takers }: Gathered<Appended>): void {
    calls += 1
    const sent = send(String(calls), args)
      .then(
        ({ at, outcomes }) => {
          for (let index = 0; index < takers.length; index += 1)
            answer(takers[index] as Taker<Appended>, outcomes[index] as string, at)
        },
        (error) => {
          for (const taker of takers) taker.reject(error)
          failQueued(error)
        },
      )
      .finally(() => {
        waiting -= takers.length
        underWay.delete(sent)
        const next = queued.shift()
        if (next) sendOff(next)
        if (underWay.size === 0 || (!isBehind() && (overdue || gathered.entries >= most.entries))) flush()
      })
    underWay.add(sent)
  }

  /** Fails the queued calls, too. They have waited as long as the failed call, and would only wait for the same failure. */
  function failQueued(error: unknown): void {
    const failed = queued
    queued = []
    for (const { takers } of failed) {
      waiting -= takers.length
      for (const taker of takers) taker.reject(error)
    }
  }

  function answer({ resolve, reject, entries }: Taker<Appended>, outcome: string, at: number): void {
    try {
      resolve(read(outcome, at, entries))
    } catch (error) {
      reject(error)
    }
  }

  return {
    add(entries, once, digest) {
      const capacity = isBehind() ? behind.entries : most.entries
      if (gathered.entries + entries.length > capacity || gathered.bytes > most.bytes) flush()
      if (gathered.takers.length === 0) setImmediate(sendOrHold)
      const [first] = entries
      if (entries.length === 1 && digest === '' && first?.key === undefined) {
        gathered.bytes += pushPlain(gathered.args, first as NewEvent)
      } else {
        gathered.args.push(`#${entries.length} ${digest} ${once?.hash ?? ''}`)
        for (const entry of entries) gathered.bytes += pushEntry(gathered.args, entry)
      }
      gathered.entries += entries.length
      waiting += 1
      return new Promise((resolve, reject) => void gathered.takers.push({ resolve, reject, entries }))
    },
    flush,
    async settled() {
      flush()
      while (underWay.size > 0) await Promise.all(underWay)
    },
    get waiting() {
      return waiting
    },
  }
}

interface Gathered<Appended> {
  readonly args: string[]
  readonly takers: Taker<Appended>[]
  entries: number
  bytes: number
}

interface Taker<Appended> {
  readonly entries: readonly NewEvent[]
  resolve(appended: Appended): void
  reject(error: unknown): void
}

function nothingYet(): Gathered<never> {
  return { args: [], takers: [], entries: 0, bytes: 0 }
}

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
