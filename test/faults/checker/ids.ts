import type { Finding, LineNumber } from './invariants.ts'
import type { Ledger, Publish, Reader } from './ledger.ts'
import type { Losses } from './losses.ts'

/** Everything that hangs on ids: events under two of them, ids of two events, bytes that differ, ids that go back. */
export function findIdFaults(ledger: Ledger, losses: Losses): Finding[] {
  return [
    ...ledger.publishes.flatMap((publish) => [...severalIds(publish, ledger, losses), ...severalHashes(publish)]),
    ...ledger.readers.flatMap((reader) => repeats(reader, losses)),
    ...[...ledger.publishesById].flatMap(([id, owners]) => reuse(id, owners)),
    // Two masters number their events without knowing of each other.
    ...regressions(ledger, (publish) => !losses.isOnLostMaster(publish)),
    ...regressions(ledger, losses.isOnLostMaster),
    ...ledger.publishes.flatMap(phantom),
  ]
}

/** The id with which a reader got an event. */
export function idIn(reader: Reader, publish: Publish): string {
  return reader.firstIds.get(publish.index) ?? (publish.ids.keys().next().value as string)
}

export function compareIds(order: 'text' | 'decimal', a: string, b: string): number {
  if (order === 'decimal' && a.length !== b.length) return a.length - b.length
  return a < b ? -1 : Number(a > b)
}

/** One publish under several ids: two events when it was sent again or went unanswered, else two names for one event. */
function severalIds(publish: Publish, { readers }: Ledger, losses: Losses): Finding[] {
  if (publish.ids.size < 2) return []
  const ids = [...publish.ids.keys()].join(' and ')
  const lines = [...publish.invokes, ...publish.unknowns, ...publish.ids.values()]
  // A log that lost the first lost its key, too. Each loss excuses one more id, and no more. A publish that was sent once is no
  // different: its hub sends a call that was not answered again to the server that took over.
  if (losses.timesForgotten(publish) >= publish.ids.size - 1) return []
  if (publish.invokes.length > 1 || publish.unknowns.length > 0) {
    const message = `${publish.name} was sent ${publish.invokes.length} times and is in the log as ${ids}`
    return [{ invariant: 'unknown-twice', message, lines, count: 1 }]
  }
  // A reader that saw both has it twice, which is told there.
  if (
    readers.some((reader) => reader.repeats.some((repeat) => repeat.publish === publish && isOther(reader, repeat)))
  ) {
    return []
  }
  return [{ invariant: 'inconsistent-id', message: `${publish.name} is called ${ids}`, lines, count: 1 }]
}

function severalHashes(publish: Publish): Finding[] {
  if (publish.shas.size < 2) return []
  const message = `${publish.name} has ${publish.shas.size} different contents`
  return [{ invariant: 'inconsistent-id', message, lines: [...publish.shas.values()], count: 1 }]
}

function repeats(reader: Ledger['readers'][number], losses: Losses): Finding[] {
  return reader.repeats.flatMap((repeat): Finding[] => {
    const { publish } = repeat
    const other = isOther(reader, repeat)
    if (!other && !reader.start.once) return []
    // Two events from one publish that was sent again are the log's fault, and told there.
    if (other && (publish.invokes.length > 1 || publish.unknowns.length > 0)) return []
    if (other && losses.timesForgotten(publish) >= publish.ids.size - 1) return []
    const message = `${reader.who} got ${publish.name} twice${other ? ', under two ids' : ''}`
    const lines = [reader.receipts.line[repeat.receipt] as LineNumber, repeat.line]
    return [{ invariant: 'duplicate', message, lines, count: 1 }]
  })
}

function isOther(reader: Reader, repeat: Reader['repeats'][number]): boolean {
  return repeat.id !== idIn(reader, repeat.publish)
}

function reuse(id: string, owners: readonly Publish[]): Finding[] {
  if (owners.length < 2) return []
  const message = `${id} is the id of ${owners.map((publish) => publish.name).join(' and ')}`
  const lines = owners.map((publish) => publish.ids.get(id) as LineNumber)
  return [{ invariant: 'id-reuse', message, lines, count: 1 }]
}

/** Ids that are smaller than one which was in the log before their event was published. */
function regressions(ledger: Ledger, isOfThese: (publish: Publish) => boolean): Finding[] {
  const order = ledger.facts('ids')[0]?.order
  if (!order) return []
  const hasOneId = (publish: Publish) => publish.ids.size === 1 && publish.invokedAt < Infinity
  const named = ledger.publishes.filter((publish) => hasOneId(publish) && isOfThese(publish))
  const byAppend = named.toSorted((a, b) => a.appendedBy - b.appendedBy)
  const findings: Finding[] = []
  let next = 0
  let highest: Publish | undefined
  for (const publish of named.toSorted((a, b) => a.invokedAt - b.invokedAt)) {
    for (; (byAppend[next]?.appendedBy ?? Infinity) < publish.invokedAt; next += 1) {
      const appended = byAppend[next] as Publish
      if (!highest || compareIds(order, firstId(appended), firstId(highest)) > 0) highest = appended
    }
    if (!highest || compareIds(order, firstId(publish), firstId(highest)) >= 0) continue
    const message = `${publish.name} has the id ${firstId(publish)}, after ${highest.name} had ${firstId(highest)}`
    const lines = [...highest.ids.values(), ...publish.invokes.slice(0, 1), ...publish.ids.values()]
    findings.push({ invariant: 'id-reuse', message, lines, count: 1 })
  }
  return findings
}

function firstId(publish: Publish): string {
  return publish.ids.keys().next().value as string
}

function phantom(publish: Publish): Finding[] {
  if (publish.receivers === 0) return []
  const rejected =
    publish.fails.length > 0 && publish.fails.length === publish.invokes.length && publish.oks.length === 0
  if (publish.invokes.length > 0 && !rejected) return []
  const message = `${publish.name} was received, but ${rejected ? 'its publish was rejected' : 'nobody published it'}`
  return [{ invariant: 'phantom', message, lines: [...publish.fails, ...publish.ids.values()], count: 1 }]
}
