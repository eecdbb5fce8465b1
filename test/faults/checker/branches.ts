import { compareIds } from './ids.ts'
import type { Ledger, Publish, StartedReader } from './ledger.ts'
import { countAtMost } from './precedence.ts'

/**
 * Gives each gap of a reader that is told for the sake of a branch the branch that it may be about, and none to two.
 *
 * A reader that is told late is told of one branch while the next is being made. So a gap is not taken to be about the
 * newest `branch` line before it, but about one that may have come behind its cursor; the oldest, as they come in turn.
 *
 * A log that lost part of its events learns of the loss from each hub that saw more, one after the other. So a reader may be told
 * of one loss several times, but of each channel once.
 */
export function createBranches(ledger: Ledger): Branches {
  const ends = ledger.facts('branched').map(({ t }) => t)
  const branches = ledger.facts('branch').map(({ t, mayLoseSince }, index, all): Branch => {
    const end = ends[countAtMost(ends, t)] ?? Number.POSITIVE_INFINITY
    const until = end < (all[index + 1]?.t ?? Number.POSITIVE_INFINITY) ? end : undefined
    return { from: t, until, isPartial: mayLoseSince !== undefined }
  })
  const madeAfter = createDates(ledger)

  return {
    ofReader() {
      let next = 0
      let told = new Set<string>()
      /** Whether the gap tells of further channels, for the branch that the reader was told of last. */
      const isRest = (gap: Gap, cursorAfter: number) => {
        const last = branches[next - 1]
        const isInTime = cursorAfter <= (last?.until ?? Number.POSITIVE_INFINITY)
        return last?.isPartial === true && isInTime && !gap.channels.some((channel) => told.has(channel))
      }
      return (gap, previous) => {
        const since = previous?.t ?? Number.NEGATIVE_INFINITY
        const cursorAfter = madeAfter(gap.from)
        const found = branches.findIndex(({ from, until }, index) => {
          if (index < next || from > gap.t) return false
          return until === undefined ? from > since : cursorAfter <= until
        })
        if (found === -1) {
          if (!isRest(gap, cursorAfter)) return false
          for (const channel of gap.channels) told.add(channel)
          return true
        }
        next = found + 1
        told = new Set(gap.channels)
        return true
      }
    },
  }
}

export interface Branches {
  /** For the gaps of one reader, in their order: whether there is a branch that the gap may be about. */
  ofReader(): (gap: Gap, previous: Gap | undefined) => boolean
}

type Gap = StartedReader['gaps'][number]

interface Branch {
  /** It came about between these two. */
  readonly from: number
  /** Left out: nobody wrote down when every hub knew. */
  readonly until: number | undefined
  /** Else the log lost everything, and a reader is told once. */
  readonly isPartial: boolean
}

/** The ids of a master that was given up have an order of their own. */
function createDates(ledger: Ledger): (id: string | null) => number {
  const epochs = ledger.facts('branch').flatMap(({ epoch }) => epoch ?? [])
  const isGivenUp = (id: string) => epochs.some((epoch) => id.includes(epoch))
  const [ofThose, ofOthers] = [datesOf(ledger, isGivenUp), datesOf(ledger, (id) => !isGivenUp(id))]
  return (id) => (id !== null && isGivenUp(id) ? ofThose(id) : ofOthers(id))
}

/** When the place of an id was certainly not there yet: before the call of an event that stands before it, or is it. */
function datesOf(ledger: Ledger, isOfThese: (id: string) => boolean): (id: string | null) => number {
  const order = ledger.facts('ids')[0]?.order
  if (!order) return () => Number.NEGATIVE_INFINITY
  const idOf = (publish: Publish) => publish.ids.keys().next().value as string
  const named = ledger.publishes.filter((publish) => publish.ids.size === 1 && publish.invokedAt < Infinity)
  const dated = named.map((publish) => ({ id: idOf(publish), latest: publish.invokedAt }))
  const sorted = dated.filter(({ id }) => isOfThese(id))
  sorted.sort((a, b) => compareIds(order, a.id, b.id))
  let latest = Number.NEGATIVE_INFINITY
  for (const each of sorted) {
    latest = Math.max(latest, each.latest)
    each.latest = latest
  }
  return (id) => {
    if (id === null) return Number.NEGATIVE_INFINITY
    let low = 0
    let high = sorted.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compareIds(order, (sorted[middle] as { id: string }).id, id) <= 0) low = middle + 1
      else high = middle
    }
    return sorted[low - 1]?.latest ?? Number.NEGATIVE_INFINITY
  }
}
