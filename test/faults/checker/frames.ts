import type { Finding } from './invariants.ts'
import { type Ledger, receiptOf, type StartedReader } from './ledger.ts'

/** Streams that hold more than whole frames, and readers that took something out of a frame which was cut off. */
export function findTornFrames(ledger: Ledger): Finding[] {
  return ledger.readers.flatMap((reader) => [
    ...reader.malformed.map(({ why, number }) => finding(`${reader.who}: ${why}`, [number])),
    ...heldFromPartialFrames(ledger, reader),
    ...unfoundedCursors(ledger, reader),
  ])
}

/** An event that was handed over although its frame never ended. */
function heldFromPartialFrames(ledger: Ledger, reader: StartedReader): Finding[] {
  return reader.closes.flatMap((close) => {
    const opened = reader.connects.findLast((connect) => connect.number < close.number)
    const lines = receiptLines(ledger, reader, close.partial ?? null)
    const taken = lines.find((line) => line < close.number && line > (opened?.number ?? 0))
    if (taken === undefined) return []
    return [finding(`${reader.who} got an event whose frame was cut off`, [taken, close.number])]
  })
}

/** A cursor that no whole frame had given to the reader. */
function unfoundedCursors(ledger: Ledger, reader: StartedReader): Finding[] {
  return reader.connects.flatMap((connect) => {
    const { requested, number } = connect
    if (requested === null || requested === reader.start.from) return []
    const given =
      receiptLines(ledger, reader, requested).some((line) => line < number) ||
      reader.opens.some((open) => open.id === requested && open.number < number) ||
      reader.marks.some((mark) => mark.id === requested && mark.number < number) ||
      reader.gaps.some((gap) => gap.to === requested && gap.number < number)
    if (given) return []
    const cut = reader.closes.findLast((close) => close.number < number && close.partial === requested)
    const why = cut ? 'out of a frame that was cut off' : 'which it had from no whole frame'
    return [finding(`${reader.who} came back with ${requested}, ${why}`, [...(cut ? [cut.number] : []), number])]
  })
}

function receiptLines(ledger: Ledger, reader: StartedReader, id: string | null): number[] {
  const publishes = id === null ? [] : (ledger.publishesById.get(id) ?? [])
  return publishes.flatMap((publish) => reader.receipts.line[receiptOf(reader, publish)] ?? [])
}

function finding(message: string, lines: number[]): Finding {
  return { invariant: 'torn-frame', message, lines, count: 1 }
}
