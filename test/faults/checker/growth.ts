import type { Rest } from '../history/history.ts'
import type { Finding } from './invariants.ts'
import type { Ledger } from './ledger.ts'

/**
 * What a hub has left behind: its last rests, compared with early ones. Medians of three, because one collection does not free
 * everything. The first two rests are passed over, in which a hub compiles its code and fills what it keeps.
 */
export function measureGrowth(ledger: Ledger): { findings: Finding[]; growth: Growth | undefined } {
  const { growth: most }: { growth?: Rest } = Object.assign({}, ...ledger.facts('budget'))
  if (!most) return { findings: [], growth: undefined }
  const rests = ledger.facts('rest')
  if (rests.length < fewestRests) return { findings: [], growth: { rests: rests.length, measures: [] } }
  const first = rests.slice(passedOver, passedOver + compared)
  const last = rests.slice(-compared)
  const lines = [...first, ...last].map(({ number }) => number)
  const measures = measured.map((what) => ({
    what,
    early: medianOf(first.map((rest) => rest[what])),
    late: medianOf(last.map((rest) => rest[what])),
    most: most[what],
  }))
  const findings = measures
    .filter(({ early, late, most }) => late - early > most)
    .map(({ what, early, late, most }): Finding => {
      const message = `${last[0]?.of}: ${what} grew from ${early} to ${late}, ${late - early - most} over the budget`
      return { invariant: 'memory', message, lines, count: 1 }
    })
  return { findings, growth: { rests: rests.length, measures } }
}

export interface Growth {
  readonly rests: number
  /** Empty when there are too few rests to compare. */
  readonly measures: readonly {
    readonly what: keyof Rest
    readonly early: number
    readonly late: number
    /** How much more `late` may be. */
    readonly most: number
  }[]
}

/** The growth in one line of text. */
export function growthText({ rests, measures }: Growth): string {
  if (measures.length === 0) return `not judged: ${rests} rests, ${fewestRests} are needed`
  return measures
    .map(({ what, early, late, most }) =>
      what === 'heapBytes'
        ? `heap ${megabytes(early)} to ${megabytes(late)} MB (at most ${megabytes(most)} more)`
        : `${what} ${early} to ${late} (at most ${most} more)`,
    )
    .join(', ')
}

const measured: readonly (keyof Rest)[] = ['heapBytes', 'descriptors', 'timers']
const passedOver = 2
const compared = 3
const fewestRests = 10

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1)
}
