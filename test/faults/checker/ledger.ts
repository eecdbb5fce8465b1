import type { FactLine, Line, ReaderLine } from '../history/history.ts'
import type { LineNumber } from './invariants.ts'

/**
 * Sorts the lines of a history by whom they concern. What every invariant asks for often is worked out on the way; the
 * millions of receipts of a long run are kept as bare numbers.
 */
export function createLedger(): LedgerBuilder {
  const publishes: Publish[] = []
  const byName = new Map<string, Publish>()
  const byId = new Map<string, Publish[]>()
  const readers = new Map<string, Reader>()
  const facts: Numbered<FactLine>[] = []

  function publishOf(channel: string, seq: number): Publish {
    const name = `${channel}·${seq}`
    const known = byName.get(name)
    if (known) return known
    const publish: Publish = {
      name,
      channel,
      seq,
      index: publishes.length,
      invokes: [],
      oks: [],
      fails: [],
      unknowns: [],
      ids: new Map(),
      shas: new Map(),
      bytes: undefined,
      invokedAt: Number.POSITIVE_INFINITY,
      ackedAt: Number.POSITIVE_INFINITY,
      appendedBy: Number.POSITIVE_INFINITY,
      namedAt: Number.NEGATIVE_INFINITY,
      receivers: 0,
    }
    publishes.push(publish)
    byName.set(name, publish)
    return publish
  }

  function nameById(publish: Publish, { id, number, t }: { id: string; number: LineNumber; t: number }): void {
    if (publish.ids.has(id)) return
    publish.ids.set(id, number)
    publish.namedAt = Math.max(publish.namedAt, t)
    const owners = byId.get(id)
    if (owners) owners.push(publish)
    else byId.set(id, [publish])
  }

  function readerOf(who: string): Reader {
    const known = readers.get(who)
    if (known) return known
    const reader: Reader = {
      who,
      start: undefined,
      receipts: { publish: [], t: [], line: [] },
      firstReceipt: new Int32Array(1024).fill(-1),
      firstIds: new Map(),
      repeats: [],
      connects: [],
      opens: [],
      marks: [],
      gaps: [],
      closes: [],
      malformed: [],
      allows: [],
      end: undefined,
    }
    readers.set(who, reader)
    return reader
  }

  function receive(reader: Reader, line: Numbered<ReaderLine & { kind: 'recv' }>): void {
    const publish = publishOf(line.channel, line.seq)
    if (!publish.shas.has(line.sha)) publish.shas.set(line.sha, line.number)
    nameById(publish, line)
    publish.appendedBy = Math.min(publish.appendedBy, line.t)
    const before = receiptOf(reader, publish)
    if (before >= 0) {
      reader.repeats.push({ publish, id: line.id, line: line.number, receipt: before })
      return
    }
    publish.receivers += 1
    if (publish.index >= reader.firstReceipt.length) reader.firstReceipt = grown(reader.firstReceipt, publish.index)
    reader.firstReceipt[publish.index] = reader.receipts.t.length
    // Most events have one id; only the others are worth a note.
    if (publish.ids.size > 1) reader.firstIds.set(publish.index, line.id)
    reader.receipts.publish.push(publish)
    reader.receipts.t.push(line.t)
    reader.receipts.line.push(line.number)
  }

  return {
    add(given, number) {
      const line = { ...given, number }
      switch (line.kind) {
        case 'invoke': {
          const publish = publishOf(line.channel, line.seq)
          publish.invokes.push(number)
          publish.invokedAt = Math.min(publish.invokedAt, line.t)
          publish.bytes = line.bytes ?? publish.bytes
          if (!publish.shas.has(line.sha)) publish.shas.set(line.sha, number)
          return
        }
        case 'ok': {
          const publish = publishOf(line.channel, line.seq)
          publish.oks.push(number)
          publish.ackedAt = Math.min(publish.ackedAt, line.t)
          publish.appendedBy = Math.min(publish.appendedBy, line.t)
          nameById(publish, line)
          return
        }
        case 'fail':
          publishOf(line.channel, line.seq).fails.push(number)
          return
        case 'unknown':
          publishOf(line.channel, line.seq).unknowns.push(number)
          return
        case 'recv':
          receive(readerOf(line.who), line)
          return
        case 'reader':
          readerOf(line.who).start = line
          return
        case 'connect':
          readerOf(line.who).connects.push(line)
          return
        case 'open':
          readerOf(line.who).opens.push(line)
          return
        case 'mark':
          readerOf(line.who).marks.push(line)
          return
        case 'gap':
          readerOf(line.who).gaps.push(line)
          return
        case 'close':
          readerOf(line.who).closes.push(line)
          return
        case 'malformed':
          readerOf(line.who).malformed.push(line)
          return
        case 'allow':
          readerOf(line.who).allows.push(line)
          return
        case 'end':
          readerOf(line.who).end = line
          return
        default:
          facts.push(line)
      }
    },

    finish() {
      const all = [...readers.values()]
      const nameless = all.find((reader) => !reader.start)
      if (nameless) throw new Error(`${nameless.who} has no line of the kind "reader".`)
      return {
        publishes,
        readers: all as StartedReader[],
        publishesById: byId,
        facts: <Kind extends FactLine['kind']>(kind: Kind) =>
          facts.filter((fact): fact is Numbered<FactLine & { kind: Kind }> => fact.kind === kind),
      }
    },
  }
}

export interface LedgerBuilder {
  add(line: Line, number: LineNumber): void
  finish(): Ledger
}

export interface Ledger {
  readonly publishes: readonly Publish[]
  readonly readers: readonly StartedReader[]
  /** Everything that was ever called by an id. */
  readonly publishesById: ReadonlyMap<string, readonly Publish[]>
  facts<Kind extends FactLine['kind']>(kind: Kind): Numbered<FactLine & { kind: Kind }>[]
}

export type Numbered<Some extends Line> = Some & { readonly number: LineNumber }

export interface Publish {
  /** As messages call it: channel and number. */
  readonly name: string
  readonly channel: string
  readonly seq: number
  readonly index: number
  readonly invokes: LineNumber[]
  readonly oks: LineNumber[]
  readonly fails: LineNumber[]
  readonly unknowns: LineNumber[]
  /** Each id and hash it was seen with, by anybody, and the first line that says so. */
  readonly ids: Map<string, LineNumber>
  readonly shas: Map<string, LineNumber>
  bytes: number | undefined
  /** Infinite while it never happened. */
  invokedAt: number
  ackedAt: number
  /** When it was certainly in the log: it was acknowledged, or somebody had it. */
  appendedBy: number
  /** When it was first seen under the last of its ids. */
  namedAt: number
  /** Readers that got it. */
  receivers: number
}

export interface Reader {
  readonly who: string
  start: Numbered<ReaderLine & { kind: 'reader' }> | undefined
  /** The first receipt of each event, in the order in which they came. */
  readonly receipts: { readonly publish: Publish[]; readonly t: number[]; readonly line: LineNumber[] }
  /** By the index of a publish, the index of its receipt; see `receiptOf`. */
  firstReceipt: Int32Array
  /** By the index of a publish that had several ids by then, the one it was received with. */
  readonly firstIds: Map<number, string>
  readonly repeats: { publish: Publish; id: string; line: LineNumber; receipt: number }[]
  readonly connects: Numbered<ReaderLine & { kind: 'connect' }>[]
  readonly opens: Numbered<ReaderLine & { kind: 'open' }>[]
  readonly marks: Numbered<ReaderLine & { kind: 'mark' }>[]
  readonly gaps: Numbered<ReaderLine & { kind: 'gap' }>[]
  readonly closes: Numbered<ReaderLine & { kind: 'close' }>[]
  readonly malformed: Numbered<ReaderLine & { kind: 'malformed' }>[]
  readonly allows: Numbered<ReaderLine & { kind: 'allow' }>[]
  end: Numbered<ReaderLine & { kind: 'end' }> | undefined
}

export type StartedReader = Reader & { readonly start: NonNullable<Reader['start']> }

/** The index of a reader's first receipt of this publish, −1 when it never got it. */
export function receiptOf(reader: Reader, publish: Publish): number {
  return reader.firstReceipt[publish.index] ?? -1
}

/** Whether the event may be in the log. Rejected every time, it is not; without an answer, it may be. */
export function mayExist(publish: Publish): boolean {
  return publish.invokes.length > publish.fails.length || publish.oks.length > 0 || publish.receivers > 0
}

export function isAcked(publish: Publish): boolean {
  return publish.oks.length > 0
}

/** Whether a channel is one of these names, of which `orders/*` stands for all below it. */
export function covers(names: readonly string[], channel: string): boolean {
  return names.some((name) => name === channel || (name.endsWith('/*') && channel.startsWith(name.slice(0, -1))))
}

function grown(table: Int32Array, index: number): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(Math.max(index + 1, table.length * 2)).fill(-1)
  larger.set(table)
  return larger
}
