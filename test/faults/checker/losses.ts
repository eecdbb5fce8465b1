import type { Finding, LineNumber } from './invariants.ts'
import type { Ledger, Publish, StartedReader } from './ledger.ts'
import { countAtMost } from './precedence.ts'

/**
 * What a log has lost although it was acknowledged, by the facts of the run. Who had received such an event is to be told
 * before it goes on; for all others the event has never been.
 */
export function createLosses(ledger: Ledger): Losses {
  const ends = ledger.facts('branched').map(({ t }) => t)
  const branches = ledger.facts('branch').map(
    ({ t, mayLoseSince, losesSince = Infinity }): Loss => ({
      isPartial: mayLoseSince !== undefined,
      mayLoseSince: mayLoseSince ?? -Infinity,
      losesSince,
      at: t,
      until: ends[countAtMost(ends, t)] ?? Infinity,
    }),
  )
  const losses = branches.filter(({ isPartial }) => isPartial)

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
    mayBeLost: (publish) => losses.some((loss) => mayTake(loss, publish)),
    timesForgotten: (publish) =>
      branches.filter((branch) => mayTake(branch, publish) && branch.at <= publish.namedAt).length,
    findUntold: () => losses.flatMap((loss) => ledger.readers.flatMap((reader) => untold(reader, loss))),
  }
}

export interface Losses {
  /** Whether the event may have been in the log and be gone. */
  mayBeLost(publish: Publish): boolean
  /** How often the log may have lost the event, and its key with it, before it was there under its last id. */
  timesForgotten(publish: Publish): number
  /** Readers that went on behind a lost event as if nothing had been. */
  findUntold(): Finding[]
}

interface Loss {
  /** Else the log was emptied, and all readers are told. */
  readonly isPartial: boolean
  readonly mayLoseSince: number
  readonly losesSince: number
  readonly at: number
  readonly until: number
}

function mayTake({ mayLoseSince, until }: Loss, { appendedBy, invokedAt }: Publish): boolean {
  return appendedBy >= mayLoseSince && invokedAt <= until
}
