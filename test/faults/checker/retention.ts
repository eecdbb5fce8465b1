import { createBranches } from './branches.ts'
import type { Finding } from './invariants.ts'
import { covers, type Ledger, mayExist, type Publish, receiptOf, type StartedReader } from './ledger.ts'
import { countAtMost, type Precedence } from './precedence.ts'

/**
 * Announced gaps that had no reason. A gap has one when something the reader was still to get may have been let go: by the
 * facts of the run, not by what the hub says. Gaps for which there are no facts are counted and not judged.
 */
export function judgeGaps(ledger: Ledger, precedence: Precedence): { findings: Finding[]; unjudged: number } {
  const findings: Finding[] = []
  let unjudged = 0
  const channels = createChannels(ledger)
  const branches = createBranches(ledger)
  for (const reader of ledger.readers) {
    const hasBranch = branches.ofReader()
    reader.gaps.forEach((gap, index) => {
      const verdict = judge(reader, gap, reader.gaps[index - 1], hasBranch)
      if (verdict === 'unjudged') unjudged += 1
      else if (verdict !== 'founded') findings.push(falseGap(reader, gap, verdict))
    })
  }
  return { findings, unjudged }

  /** Founded, not to be judged, or what is wrong with it. */
  function judge(
    reader: StartedReader,
    gap: Gap,
    previous: Gap | undefined,
    hasBranch: (gap: Gap, previous: Gap | undefined) => boolean,
  ): string {
    const since = previous?.t ?? Number.NEGATIVE_INFINITY
    switch (gap.reason) {
      case 'expired':
        return judgeExpired(reader, gap)
      case 'epoch':
      case 'ahead':
        return hasBranch(gap, previous) ? 'founded' : 'the log had vouched for its ids all the time'
      case 'unknown-id':
      case 'version':
        return hasBranch(gap, previous) || !isGivenOut(gap.from) ? 'founded' : 'the hub had given out that id'
      case 'forced':
        return ledger.facts('invalidate').some((fact) => fact.t <= gap.t && fact.t > since)
          ? 'founded'
          : 'nobody had declared anything void'
      default:
        return 'unjudged'
    }
  }

  function judgeExpired(reader: StartedReader, gap: Gap): string {
    const owed = ledger.publishes.filter((publish) => isStillToCome(reader, gap, publish))
    let judged = true
    for (const publish of owed) {
      const held = channels.isHeld(publish, gap.t)
      if (held === false) return 'founded'
      if (held === undefined) judged = false
    }
    if (!judged) return 'unjudged'
    return owed.length === 0 ? 'there was nothing to miss' : `all ${owed.length} events it could miss were held`
  }

  /** Whether the event may stand after the reader's cursor, and at the time of the gap be in the log. */
  function isStillToCome(reader: StartedReader, gap: Gap, publish: Publish): boolean {
    if (!covers(reader.start.channels, publish.channel) || !mayExist(publish) || publish.invokedAt > gap.t) return false
    const receipt = receiptOf(reader, publish)
    if (receipt >= 0 && (reader.receipts.line[receipt] as number) < gap.number) return false
    const from = gap.from === null ? undefined : ledger.publishesById.get(gap.from)?.[0]
    if (from && (from === publish || precedence.before(publish, from))) return false
    const asked = reader.connects[0]?.t ?? Number.NEGATIVE_INFINITY
    return publish.appendedBy >= asked || startsInThePast(reader, asked)
  }

  /** Whether it began with what was there before it asked, as it does with a cursor, or with a replay. */
  function startsInThePast({ start, receipts }: StartedReader, asked: number): boolean {
    return start.from !== null || receipts.publish.some((publish) => publish.appendedBy < asked)
  }

  function isGivenOut(id: string | null): boolean {
    if (id === null) return false
    if (ledger.publishesById.has(id)) return true
    return ledger.readers.some(
      ({ opens, marks, gaps }) =>
        opens.some((open) => open.id === id) ||
        marks.some((mark) => mark.id === id) ||
        gaps.some((gap) => gap.to === id),
    )
  }
}

type Gap = StartedReader['gaps'][number]

/** What the facts say about the events of each channel. */
function createChannels(ledger: Ledger): Channels {
  const windows = ledger.facts('window')
  const trims = ledger.facts('trim')
  const tables = new Map<string, Table>()

  function tableOf(channel: string): Table {
    const known = tables.get(channel)
    if (known) return known
    const publishes = ledger.publishes.filter((publish) => publish.channel === channel && mayExist(publish))
    const byInvoke = publishes.toSorted((a, b) => a.invokedAt - b.invokedAt)
    const byAppend = publishes.toSorted((a, b) => a.appendedBy - b.appendedBy)
    const table: Table = {
      invokedAt: byInvoke.map((publish) => publish.invokedAt),
      invokedBytes: runningBytes(byInvoke),
      appendedBy: byAppend.map((publish) => publish.appendedBy),
      appendedBytes: runningBytes(byAppend),
    }
    tables.set(channel, table)
    return table
  }

  return {
    isHeld(publish, t) {
      const { channel, seq } = publish
      if (trims.some((trim) => trim.channel === channel && trim.t <= t && seq <= trim.throughSeq)) return false
      const window = windows.findLast((each) => each.t <= t && (!each.channels || covers(each.channels, channel)))
      if (!window) return undefined
      if (t - publish.invokedAt > (window.maxAgeMs ?? Number.POSITIVE_INFINITY)) return false
      // At most those that had been published by then, less those that were certainly there before this one.
      const table = tableOf(channel)
      const published = countAtMost(table.invokedAt, t)
      const earlier = countBelow(table.appendedBy, publish.invokedAt)
      if (published - earlier > (window.maxEvents ?? Number.POSITIVE_INFINITY)) return false
      if (window.maxBytes === undefined) return true
      const bytes = (table.invokedBytes[published] as number) - (table.appendedBytes[earlier] as number)
      return Number.isNaN(bytes) ? undefined : bytes <= window.maxBytes
    },
  }
}

interface Channels {
  /** Whether the event was certainly held at `t`; undefined when there are no facts to tell by. */
  isHeld(publish: Publish, t: number): boolean | undefined
}

interface Table {
  readonly invokedAt: readonly number[]
  readonly appendedBy: readonly number[]
  /** By a count, the bytes of so many; not a number as soon as one is unknown. */
  readonly invokedBytes: readonly number[]
  readonly appendedBytes: readonly number[]
}

function runningBytes(publishes: readonly Publish[]): number[] {
  let total = 0
  const sums = [0]
  for (const { bytes } of publishes) {
    total += bytes ?? Number.NaN
    sums.push(total)
  }
  return sums
}

function countBelow(rising: readonly number[], limit: number): number {
  let count = countAtMost(rising, limit)
  while (count > 0 && rising[count - 1] === limit) count -= 1
  return count
}

function falseGap(reader: StartedReader, gap: Gap, why: string): Finding {
  const before = reader.receipts.line.findLast((line) => line < gap.number)
  return {
    invariant: 'false-gap',
    message: `${reader.who} was told of a gap (${gap.reason}) after ${gap.from ?? 'its start'}, but ${why}`,
    lines: [...(before === undefined ? [] : [before]), gap.number],
    count: 1,
  }
}
