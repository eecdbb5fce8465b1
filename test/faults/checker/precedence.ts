import { type Ledger, type Publish, type Reader, receiptOf } from './ledger.ts'
import type { Losses } from './losses.ts'

/**
 * What the history proves about the order of the log. It does not know the log itself and cannot read ids, so there are
 * two proofs: one event was in the log before the other was published; or a reader got them in this order. The first
 * outweighs the second, as a reader may be wrong.
 */
export function createPrecedence({ readers }: Ledger, { isOnLostMaster }: Pick<Losses, 'isOnLostMaster'>): Precedence {
  const witnesses = readers.toSorted((a, b) => b.receipts.t.length - a.receipts.t.length)
  const reaches = new Map<string, Reach>()

  function before(first: Publish, second: Publish): boolean {
    if (isOnLostMaster(first) !== isOnLostMaster(second)) return false
    if (first.appendedBy < second.invokedAt) return true
    if (second.appendedBy < first.invokedAt) return false
    const witness = witnesses.find((reader) => receiptOf(reader, first) >= 0 && receiptOf(reader, second) >= 0)
    return witness !== undefined && receiptOf(witness, first) < receiptOf(witness, second)
  }

  /** How far the receipts of a reader had come at each of them, told by time and by the receipts of a witness. */
  function reachOf(reader: Reader, channel: string, witness: Reader | undefined): Reach {
    const key = JSON.stringify([reader.who, channel, witness?.who])
    const known = reaches.get(key)
    if (known) return known
    const reach: Reach = { receipts: [], furthest: [] }
    let furthest = Number.NEGATIVE_INFINITY
    reader.receipts.publish.forEach((publish, receipt) => {
      if (publish.channel !== channel || isOnLostMaster(publish)) return
      // What nobody published proves nothing.
      const invokedAt = publish.invokes.length > 0 ? publish.invokedAt : Number.NEGATIVE_INFINITY
      furthest = Math.max(furthest, witness ? receiptOf(witness, publish) : invokedAt)
      reach.receipts.push(receipt)
      reach.furthest.push(furthest)
    })
    reaches.set(key, reach)
    return reach
  }

  return {
    before,
    firstReceiptAfter(reader, publish) {
      const byTime = firstAbove(reachOf(reader, publish.channel, undefined), publish.appendedBy)
      const witness = witnesses.find((other) => other !== reader && receiptOf(other, publish) >= 0)
      if (!witness) return byTime
      const byWitness = firstAbove(reachOf(reader, publish.channel, witness), receiptOf(witness, publish))
      return byTime < 0 || byWitness < 0 ? Math.max(byTime, byWitness) : Math.min(byTime, byWitness)
    },
  }
}

export interface Precedence {
  /** Whether `first` provably stands before `second` in the log. */
  before(first: Publish, second: Publish): boolean
  /** The reader's first receipt of an event that provably stands after this one in its channel, −1 when there is none. */
  firstReceiptAfter(reader: Reader, publish: Publish): number
}

interface Reach {
  readonly receipts: number[]
  /** Never falls, so that it can be searched. */
  readonly furthest: number[]
}

function firstAbove({ receipts, furthest }: Reach, value: number): number {
  return receipts[countAtMost(furthest, value)] ?? -1
}

/** How many of these rising numbers are at most `limit`. */
export function countAtMost(rising: readonly number[], limit: number): number {
  let low = 0
  let high = rising.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((rising[middle] as number) <= limit) low = middle + 1
    else high = middle
  }
  return low
}
