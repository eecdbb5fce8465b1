import { idIn } from './ids.ts'
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
    ({ t, mayLoseSince, losesSince = Infinity, epoch = '' }): Loss => ({
      isPartial: mayLoseSince !== undefined,
      epoch,
      mayLoseSince: mayLoseSince ?? -Infinity,
      losesSince,
      at: t,
      until: ends[countAtMost(ends, t)] ?? Infinity,
    }),
  )
  const losses = branches.filter(({ isPartial }) => isPartial)

  function untold(reader: StartedReader, { losesSince, at, until, epoch }: Loss): Finding[] {
    const { publish, t, line } = reader.receipts
    const last = publish.findLastIndex(
      (each, index) => each.invokedAt > losesSince && (t[index] as number) < at && idIn(reader, each).includes(epoch),
    )
    const next = publish.findIndex(({ invokedAt }, index) => index > last && invokedAt > until)
    if (last === -1 || next === -1) return []
    const [from, to] = [line[last] as LineNumber, line[next] as LineNumber]
    if (reader.gaps.some(({ number }) => number > from && number < to)) return []
    const [lost, passedBy] = [publish[last] as Publish, publish[next] as Publish]
    const message = `${reader.who} had ${lost.name}, which was lost, got ${passedBy.name} next, and was not told`
    return [{ invariant: 'unannounced-gap', message, lines: [from, to], count: 1 }]
  }

  return {
    isOnLostMaster: (publish) =>
      losses.some(
        ({ epoch, losesSince }) =>
          epoch !== '' && publish.invokedAt > losesSince && publish.ids.size > 0 && isNamedOnly(publish, epoch),
      ),
    mayBeLost: (publish) => losses.some((loss) => mayTake(loss, publish)),
    timesForgotten: (publish) =>
      branches.filter((branch) => mayTake(branch, publish) && branch.at <= publish.namedAt).length,
    findUntold: () => losses.flatMap((loss) => ledger.readers.flatMap((reader) => untold(reader, loss))),
  }
}

export interface Losses {
  /**
   * Whether the event was taken by a master that was given up, while another took events as well. Such an event proves nothing
   * about the order of those that the other one took.
   */
  isOnLostMaster(publish: Publish): boolean
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
  /** Only events whose id names it are lost. Every id names the empty one. */
  readonly epoch: string
  readonly mayLoseSince: number
  readonly losesSince: number
  readonly at: number
  readonly until: number
}

function mayTake({ mayLoseSince, until, epoch }: Loss, { appendedBy, invokedAt, ids }: Publish): boolean {
  const isNamed = ids.size === 0 || [...ids.keys()].some((id) => id.includes(epoch))
  return isNamed && appendedBy >= mayLoseSince && invokedAt <= until
}

function isNamedOnly({ ids }: Publish, epoch: string): boolean {
  return [...ids.keys()].every((id) => id.includes(epoch))
}
