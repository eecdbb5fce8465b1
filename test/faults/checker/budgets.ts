import type { Finding } from './invariants.ts'
import type { Ledger, Publish, StartedReader } from './ledger.ts'
import { countAtMost } from './precedence.ts'

/** Memory over its budget. */
export function findMemoryOverruns(ledger: Ledger): Finding[] {
  const { rssBytes, queueBytes } = budgetOf(ledger)
  return ledger.facts('memory').flatMap((measured) => {
    const over = (what: string, bytes = 0, limit = Number.POSITIVE_INFINITY): Finding[] => {
      const message = `${measured.of}: ${what} of ${bytes} bytes, ${bytes - limit} over the budget`
      return bytes > limit ? [{ invariant: 'memory', message, lines: [measured.number], count: 1 }] : []
    }
    return [
      ...over('resident memory', measured.rssBytes, rssBytes),
      ...over('a queue', measured.queueBytes, queueBytes),
    ]
  })
}

/** Readers that took too long to catch up, and how long all of them took, in ms. */
export function measureCatchUp(ledger: Ledger): { findings: Finding[]; times: number[] } {
  const { catchUpMs = Number.POSITIVE_INFINITY } = budgetOf(ledger)
  const findings: Finding[] = []
  const times: number[] = []
  const faults = ledger.facts('fault')
  const waited = ledger.facts('waited')
  const heals = [...ledger.facts('heal'), ...ledger.facts('quiet')]
  for (const reader of ledger.readers) {
    const receipts = receiptsByAck(reader)
    const concerns = (fact: { readonly kind: string; readonly readers?: readonly string[] }) =>
      fact.readers?.includes(reader.who) ?? true
    for (const heal of heals.filter(concerns)) {
      if (reader.end && reader.end.t < heal.t) continue
      if (reader.opens.length === 0) {
        const message = `${reader.who} never got a stream`
        findings.push({ invariant: 'liveness', message, lines: [reader.start.number, heal.number], count: 1 })
        continue
      }
      const last = receipts.last[countAtMost(receipts.ackedAt, heal.t) - 1]
      if (last === undefined) continue
      const caughtUpAt = Math.max(reader.receipts.t[last] as number, heal.t)
      const deadline = heal.t + catchUpMs + waitedIn(waited, heal.t, caughtUpAt)
      const hits = faults.filter((fault) => concerns(fault) && fault.t > heal.t).map((fault) => fault.t)
      const undisturbedUntil = Math.min(...hits)
      if (caughtUpAt <= undisturbedUntil) times.push(caughtUpAt - heal.t)
      // A reader that was hit again before its time was over is not judged.
      if (caughtUpAt <= deadline || undisturbedUntil < deadline) continue
      const { name } = reader.receipts.publish[last] as Publish
      const message = `${reader.who} took ${Math.round(caughtUpAt - heal.t)} ms until it had ${name}, and all before`
      const line = reader.receipts.line[last] as number
      findings.push({ invariant: 'liveness', message, lines: [heal.number, line], count: 1 })
    }
  }
  return { findings, times }
}

/** For how long other programs had the processors meanwhile. A line is about the time before it. */
function waitedIn(waited: readonly { readonly t: number; readonly ms: number }[], from: number, to: number): number {
  let sum = 0
  for (const { t, ms } of waited) if (t > from && t <= to) sum += ms
  return sum
}

function budgetOf(ledger: Ledger): { catchUpMs?: number; rssBytes?: number; queueBytes?: number } {
  return Object.assign({}, ...ledger.facts('budget'))
}

/** The acknowledged events a reader got, by the time of their answer; with each, which of those up to it came last. */
function receiptsByAck({ receipts }: StartedReader): { ackedAt: number[]; last: number[] } {
  const acked = receipts.publish
    .map((publish, receipt) => ({ receipt, ackedAt: publish.ackedAt }))
    .filter(({ ackedAt }) => ackedAt < Number.POSITIVE_INFINITY)
    .sort((a, b) => a.ackedAt - b.ackedAt)
  let last = -1
  return {
    ackedAt: acked.map(({ ackedAt }) => ackedAt),
    last: acked.map(({ receipt }) => {
      last = Math.max(last, receipt)
      return last
    }),
  }
}
