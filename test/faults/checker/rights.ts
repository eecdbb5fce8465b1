import type { Finding, LineNumber } from './invariants.ts'
import { covers, type Ledger, type Publish, type StartedReader } from './ledger.ts'

/** Events of channels that their reader had not asked for, or was not allowed at that moment. */
export function findLeaks({ readers }: Ledger): Finding[] {
  return readers.flatMap((reader) => {
    const asked = new Map<string, boolean>()
    const findings: Finding[] = []
    reader.receipts.publish.forEach((publish, receipt) => {
      const { channel } = publish
      if (!asked.has(channel)) asked.set(channel, covers(reader.start.channels, channel))
      const line = reader.receipts.line[receipt] as LineNumber
      const t = reader.receipts.t[receipt] as number
      if (!asked.get(channel)) findings.push(leak(reader, publish, [reader.start.number, line], 'did not ask for'))
      else if (!mayRead(reader, channel, t)) {
        const rule = reader.allows.findLast((allow) => allow.t <= t)
        findings.push(leak(reader, publish, [...(rule ? [rule.number] : []), line], 'may not read'))
      }
    })
    return findings
  })
}

/** Whether the channel was allowed all the time from `from` to `until`, so that nothing of it may be missing. */
export function mayReadThroughout(reader: StartedReader, channel: string, from: number, until: number): boolean {
  const during = reader.allows.filter((allow) => allow.t > from && allow.t <= until)
  const before = reader.allows.findLast((allow) => allow.t <= from)
  return [...(before ? [before] : []), ...during].every((allow) => covers(allow.channels, channel))
}

/** Rights that were taken away end with the grace of the line that took them. */
function mayRead(reader: StartedReader, channel: string, t: number): boolean {
  for (const allow of reader.allows.toReversed()) {
    if (allow.t > t) continue
    if (covers(allow.channels, channel)) return true
    if (t >= allow.t + (allow.graceMs ?? 0)) return false
  }
  // Before the first rule everything that was asked for is allowed.
  return true
}

function leak(reader: StartedReader, publish: Publish, lines: LineNumber[], why: string): Finding {
  const message = `${reader.who} got ${publish.name} of a channel that it ${why}`
  return { invariant: 'private-leak', message, lines, count: 1 }
}
