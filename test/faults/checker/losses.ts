import type { Finding, LineNumber } from './invariants.ts'
import type { Ledger, Publish, StartedReader } from './ledger.ts'
import { countAtMost } from './precedence.ts'

/**
 * What a log has lost although it was acknowledged, by the facts of the run. Who had received such an event is to be told
 * before it goes on; for all others the event has never been.
 */
export function createLosses(ledger: Ledger): Losses {
  const ends = ledger.facts('branched').map(({ t }) => t)
  const losses = ledger
    .facts('branch')
    .flatMap(({ t, mayLoseSince, losesSince = Infinity }): Loss[] =>
      mayLoseSince === undefined
        ? []
        : [{ mayLoseSince, losesSince, at: t, until: ends[countAtMost(ends, t)] ?? Infinity }],
    )

  function untold(reader: StartedReader, { losesSince, at, until }: Loss): Finding[] {
    const { publish, t, line } = reader.receipts
    const last = publish.findLastIndex(({ invokedAt }, index) => invokedAt > losesSince && (t[index] as number) < at)
    const next = publish.findIndex(({ invokedAt }, index) => index > last && invokedAt > until)
    if (last === -1 || next === -1) return []
    const [from, to] = [line[last] as LineNumber, line[next] as LineNumber]
    if (reader.gaps.some(({ number }) => number > from && number < to)) return []
    const [lost, passedBy] = [publish[last] as Publish, publish[next] as Publish]
    const message = `${reader.who} had ${lost.name}, which was lost, got ${passedBy.name} next, and was not told`
    return [{ invariant: 'unannounced-gap', message, lines: [from, to], count: 1 }]
  }

  return {
    mayBeLost: ({ appendedBy, invokedAt }) =>
      losses.some(({ mayLoseSince, until }) => appendedBy >= mayLoseSince && invokedAt <= until),
    findUntold: () => losses.flatMap((loss) => ledger.readers.flatMap((reader) => untold(reader, loss))),
  }
}

export interface Losses {
  /** Whether the event may have been in the log and be gone. */
  mayBeLost(publish: Publish): boolean
  /** Readers that went on behind a lost event as if nothing had been. */
  findUntold(): Finding[]
}

interface Loss {
  readonly mayLoseSince: number
  readonly losesSince: number
  readonly at: number
  readonly until: number
}
