import type { AppendOptions, NewEvent } from '../contract.ts'
import { pushEntry, pushPlain } from './entry.ts'
import { slots } from './script/script.ts'

/**
 * Appends of one turn of the event loop, and all that come while a call is under way, travel in one call: what a call costs
 * in Redis, here, and at the tails of all hubs is then shared by them. They stay appends of their own, each with its own
 * outcome.
 */
export interface Appends<Appended> {
  /** Rejects where the call fails, and where `read` throws. */
  add(entries: readonly NewEvent[], once: AppendOptions['once'], digest: string): Promise<Appended>
  /** Sends what has gathered, so that what is asked next comes after it. */
  flush(): void
  /** Resolves when nothing is under way any more. */
  settled(): Promise<void>
  /** Appends that have no answer yet. */
  readonly waiting: number
}

export interface Answers {
  /** When the call was worked on. */
  readonly at: number
  /** Of each append, in their order: the position of its first entry, or what became of it otherwise, and more about that. */
  readonly outcomes: readonly string[]
}

// Fewer would pay more for each call, more would let Redis wait for the hub and the hub for Redis: both work at a time.
// It also bounds what one call holds Redis up for, to some milliseconds. Larger batches go alone.
const most = { entries: 128, bytes: 512 * 1024 }

// A call mostly takes a millisecond or two. One that takes longer does not hold up the next.
const holdMs = 5

// So many calls without an answer mean that Redis is behind, as when it writes its file anew. Larger calls cost it a quarter
// less for each event, because what it does once for a channel is shared by more of them; so it catches up. A Redis that is
// only far away looks the same, so nobody waits for it much longer.
const behind = { calls: 2, entries: 512, holdMs: 25 }

// The script knows a call that is sent again by its number, for as many calls as it has slots. With half of them, none that
// is without an answer is ever written over.
const mostCalls = slots / 2

/**
 * @param read - what the outcome of an append of these entries means; throws what its caller is to be told
 */
export function createAppends<Appended>(
  send: (number: string, args: readonly string[]) => Promise<Answers>,
  read: (outcome: string, at: number, entries: readonly NewEvent[]) => Appended,
): Appends<Appended> {
  let gathered: Gathered<Appended> = nothingYet()
  let calls = 0
  let waiting = 0
  let hold: ReturnType<typeof setTimeout> | undefined
  /** What has gathered would have gone out by now, had Redis answered. */
  let overdue = false
  const underWay = new Set<Promise<void>>()
  /** Full calls for which there is no slot yet. */
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

  /** They have waited as long as the one that failed, and would only wait for the same again. */
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
      const room = isBehind() ? behind.entries : most.entries
      if (gathered.entries + entries.length > room || gathered.bytes > most.bytes) flush()
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
