import type { Figures } from '../../src/monitoring/figures.ts'

/** The increase of a count per second, for each entry of the history; null for an entry without a predecessor to compare with. */
export function ratesOf(history: readonly Figures[], count: (figures: Figures) => number): (number | null)[] {
  return history.map((figures, index) => {
    const before = history[index - 1]
    if (!before || before.startedAt !== figures.startedAt) return null
    const seconds = (figures.at - before.at) / 1000
    return seconds > 0 ? (count(figures) - count(before)) / seconds : null
  })
}

/** The figures of five minutes before, or the oldest figures since the same start of the program. */
export function earlier(history: readonly Figures[], index = history.length - 1): Figures | undefined {
  const last = history[index]
  if (!last) return undefined
  for (let at = Math.max(0, index - fiveMinutes); at < index; at++) {
    const figures = history[at]
    if (figures?.startedAt === last.startedAt) return figures
  }
  return last
}

const fiveMinutes = 300

/** The returns of readers since then by outcome, the most frequent outcome first. */
export function outcomesSince(now: Figures, then: Figures): [outcome: string, count: number][] {
  const outcomes = Object.keys(now.resumes)
  const counts = outcomes.map((name): [string, number] => [name, (now.resumes[name] ?? 0) - (then.resumes[name] ?? 0)])
  return counts.sort(([, one], [, other]) => other - one)
}

/** How many readers returned, and how many of them had to load their state again, counted as the alert counts them. */
export function returnsSince(now: Figures, then: Figures): { all: number; lost: number } {
  const counts = outcomesSince(now, then).filter(([outcome]) => outcome !== 'left')
  const lost = counts.filter(([outcome]) => outcome !== 'replayed' && outcome !== 'forced')
  const sum = (some: readonly [string, number][]) => some.reduce((total, [, count]) => total + count, 0)
  return { all: sum(counts), lost: sum(lost) }
}

/** The share of returned readers that had to load their state again; null when no reader returned. */
export function gapRate({ all, lost }: { all: number; lost: number }): number | null {
  return all > 0 ? lost / all : null
}

/** The share from which on the alert is raised. */
export const gapAlert = 0.02

export const sizeLabels = ['0', '1', '2–10', '11–100', '101–1,000', '1,001–10,000', 'more']
