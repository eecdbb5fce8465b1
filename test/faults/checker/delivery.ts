import type { Finding, LineNumber } from './invariants.ts'
import { covers, isAcked, type Ledger, type Publish, receiptOf, type StartedReader } from './ledger.ts'
import type { Losses } from './losses.ts'
import type { Precedence } from './precedence.ts'
import { mayReadThroughout } from './rights.ts'

/**
 * Who misses what. An acknowledged event that nobody has, or that a reader did not get before the end, is a lost write; an
 * event that a reader has passed over is an unannounced gap. What a `gap` line speaks of is excused.
 */
export function findMissing(ledger: Ledger, precedence: Precedence, losses: Losses): Finding[] {
  const lost = new Map<Publish, StartedReader[]>()
  const findings: Finding[] = []
  for (const reader of ledger.readers) {
    const holes = new Map<number, Publish[]>()
    const short: Publish[] = []
    for (const publish of ledger.publishes) {
      if (receiptOf(reader, publish) >= 0 || !isOwed(reader, publish)) continue
      const passedBy = precedence.firstReceiptAfter(reader, publish)
      const until = passedBy < 0 ? Number.POSITIVE_INFINITY : (reader.receipts.t[passedBy] as number)
      if (!mayReadThroughout(reader, publish.channel, publish.invokedAt, until)) continue
      if (isExcused(reader, publish) || losses.mayBeLost(publish)) continue
      if (isAcked(publish) && publish.receivers === 0) {
        if (passedBy >= 0 || staysToTheEnd(reader)) listOf(lost, publish).push(reader)
      } else if (passedBy >= 0) listOf(holes, passedBy).push(publish)
      else if (staysToTheEnd(reader)) short.push(publish)
    }
    for (const [passedBy, missing] of holes) findings.push(hole(reader, missing, passedBy))
    if (short.length > 0) findings.push(...stopsShort(reader, short))
  }
  return [...[...lost].map(([publish, readers]) => lostForAll(publish, readers)), ...findings]

  function isOwed(reader: StartedReader, publish: Publish): boolean {
    if (!covers(reader.start.channels, publish.channel)) return false
    // Nobody has it and nobody was told that it is there: it need not exist.
    if (!isAcked(publish) && publish.receivers === 0) return false
    return isAfterStart(reader, publish)
  }

  function isAfterStart(reader: StartedReader, publish: Publish): boolean {
    const open = reader.opens[0]
    if (!open) return false
    if (publish.invokedAt > open.t) return true
    const started = eventOf(reader.start.from ?? open.id)
    if (started && precedence.before(started, publish)) return true
    const first = reader.receipts.publish.find((received) => received.channel === publish.channel)
    return first !== undefined && precedence.before(first, publish)
  }

  function isExcused(reader: StartedReader, publish: Publish): boolean {
    return reader.gaps.some((gap) => {
      const from = eventOf(gap.from)
      const to = eventOf(gap.to)
      if (from && (from === publish || precedence.before(publish, from))) return false
      return publish.invokedAt <= gap.t && !(to && precedence.before(to, publish))
    })
  }

  function eventOf(id: string | null): Publish | undefined {
    return id === null ? undefined : ledger.publishesById.get(id)?.[0]
  }

  function staysToTheEnd(reader: StartedReader): boolean {
    const quiet = ledger.facts('quiet')[0]
    return quiet !== undefined && !(reader.end && reader.end.t < quiet.t)
  }
}

function listOf<Key, Item>(lists: Map<Key, Item[]>, key: Key): Item[] {
  const list = lists.get(key) ?? []
  lists.set(key, list)
  return list
}

function lostForAll(publish: Publish, readers: readonly StartedReader[]): Finding {
  return {
    invariant: 'lost-write',
    message: `${publish.name} was acknowledged and nobody got it, not even ${namesOf(readers.map(({ who }) => who))}`,
    lines: linesOf(publish),
    count: 1,
  }
}

function stopsShort(reader: StartedReader, missing: readonly Publish[]): Finding[] {
  const acked = missing.filter(isAcked)
  const unanswered = missing.filter((publish) => !isAcked(publish))
  const lastLine = reader.receipts.line.at(-1) ?? reader.start.number
  const finding = (invariant: Finding['invariant'], publishes: readonly Publish[], what: string): Finding[] => {
    const names = namesOf(publishes.map(({ name }) => name))
    const message = `${reader.who} stayed to the end and never got ${names}, which ${what}`
    const lines = [lastLine, ...publishes.slice(0, 3).flatMap(linesOf)]
    return publishes.length === 0 ? [] : [{ invariant, message, lines, count: publishes.length }]
  }
  return [...finding('lost-write', acked, 'was acknowledged'), ...finding('unannounced-gap', unanswered, 'others have')]
}

function hole(reader: StartedReader, missing: readonly Publish[], passedBy: number): Finding {
  const next = reader.receipts.publish[passedBy] as Publish
  const before = passedBy === 0 ? [] : [reader.receipts.line[passedBy - 1] as LineNumber]
  const names = namesOf(missing.map(({ name }) => name))
  return {
    invariant: 'unannounced-gap',
    message: `${reader.who} got ${next.name} without ${names}, and was not told`,
    lines: [...before, reader.receipts.line[passedBy] as LineNumber, ...missing.slice(0, 3).flatMap(linesOf)],
    count: missing.length,
  }
}

function linesOf(publish: Publish): LineNumber[] {
  return [...publish.invokes.slice(0, 1), ...(publish.oks[0] === undefined ? publish.ids.values() : publish.oks)]
}

function namesOf(names: readonly string[]): string {
  return names.length <= 4 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`
}
