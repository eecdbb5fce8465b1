import { compareIds, idIn } from './ids.ts'
import type { Finding, LineNumber } from './invariants.ts'
import { type Ledger, type Publish, receiptOf, type StartedReader } from './ledger.ts'
import type { Losses } from './losses.ts'

/**
 * Receipts in another order than that of the log, over all channels of a reader, since a hub has one order. An event was
 * before another when it was in the log before the other was published, when its id is smaller, or when the reader with
 * the most receipts says so; the first proof that fails is reported.
 */
export function findInversions(ledger: Ledger, { isOnLostMaster }: Pick<Losses, 'isOnLostMaster'>): Finding[] {
  const order = ledger.facts('ids')[0]?.order
  const witness = ledger.readers.toSorted((a, b) => b.receipts.t.length - a.receipts.t.length)[0]
  return ledger.readers.flatMap((reader) => {
    const { publish: received } = reader.receipts
    const findings: Finding[] = []
    // Of what comes later: the one that was first certain to be in the log, that with the smallest id, and that which
    // the witness had first.
    let appended: number | undefined
    let smallest: number | undefined
    let witnessed: number | undefined

    const isInverted = (receipt: number, later: number | undefined, test: (later: Publish) => boolean): boolean => {
      if (later === undefined) return false
      const publish = received[receipt] as Publish
      const other = received[later] as Publish
      // Time outweighs the other proofs: an id that goes back is a fault of ids, and a witness may be wrong.
      return !(certainBy(reader, publish) < other.invokedAt) && test(other)
    }

    for (let receipt = received.length - 1; receipt >= 0; receipt -= 1) {
      const publish = received[receipt] as Publish
      const isEarlier = (other: Publish) => certainBy(reader, other) < publish.invokedAt
      // Two masters number their events without knowing of each other.
      const isNumbered = order !== undefined && !isOnLostMaster(publish)
      const isSmaller = (other: Publish) =>
        isNumbered && compareIds(order, idIn(reader, other), idIn(reader, publish)) < 0
      const isWitnessed = (other: Publish) =>
        witness !== undefined &&
        [other, publish].every(isSameFor(witness, reader)) &&
        cameFirst(witness, other, publish)

      if (isInverted(receipt, appended, isEarlier)) {
        const why = `was in the log before ${publish.name} was published`
        findings.push(inversion(reader, receipt, appended as number, why))
      } else if (isInverted(receipt, smallest, isSmaller)) {
        findings.push(inversion(reader, receipt, smallest as number, 'has the smaller id'))
      } else if (isInverted(receipt, witnessed, isWitnessed)) {
        findings.push(inversion(reader, receipt, witnessed as number, `came first for ${witness?.who}`))
      }

      if (appended === undefined || certainBy(reader, publish) < certainBy(reader, received[appended] as Publish)) {
        appended = receipt
      }
      if (isNumbered && (smallest === undefined || !isSmaller(received[smallest] as Publish))) smallest = receipt
      if (witness && receiptOf(witness, publish) >= 0) {
        if (witnessed === undefined || !isWitnessed(received[witnessed] as Publish)) witnessed = receipt
      }
    }
    return findings.reverse()
  })
}

/**
 * When an event was certainly in the log under the id that the reader got. An event that was lost, and sent again by its
 * publisher, has stood at two positions.
 */
function certainBy(reader: StartedReader, publish: Publish): number {
  if (publish.ids.size <= 1) return publish.appendedBy
  const ids = [...publish.ids.keys()]
  const id = idIn(reader, publish)
  if (id === ids[0]) return publish.appendedBy
  return id === ids.at(-1) ? publish.namedAt : Number.POSITIVE_INFINITY
}

/** Whether two readers got an event from the same position. */
function isSameFor(one: StartedReader, other: StartedReader): (publish: Publish) => boolean {
  return (publish) => idIn(one, publish) === idIn(other, publish)
}

function cameFirst(reader: StartedReader, first: Publish, second: Publish): boolean {
  const [before, after] = [receiptOf(reader, first), receiptOf(reader, second)]
  return before >= 0 && before < after
}

function inversion(reader: StartedReader, receipt: number, later: number, why: string): Finding {
  const { publish, line } = reader.receipts
  const first = publish[receipt] as Publish
  const second = publish[later] as Publish
  const proof = [...second.oks.slice(0, 1), ...first.invokes.slice(0, 1)]
  return {
    invariant: 'order',
    message: `${reader.who} got ${first.name} before ${second.name}, which ${why}`,
    lines: [line[receipt] as LineNumber, line[later] as LineNumber, ...proof],
    count: 1,
  }
}
