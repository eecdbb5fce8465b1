import { attacks } from './attacks.ts'
import type { AttackCost, HostileOutcome } from './hostile.ts'
import { greetedMs, lateMs } from './meter.ts'

/**
 * What attacks may cost a hub and its honest readers. Of the requests to the webhook, 32 run at a time; as many may have been ended
 * just before, which the webhook sees a moment later.
 */
const budget = { lateSeconds: 9, rssBytes: 400e6, recovered: 1.2, webhookCalls: 64 }

/** Prints what each attack costs, and sets the exit code when that is over the budget. */
export function judgeCosts(progress: (text: string) => void): CostJudge {
  const problems: string[] = []
  let late = 0
  progress(`${'attack'.padEnd(24)} ${titles.map((title) => title.padStart(width)).join(' ')}`)
  return {
    onCost(cost) {
      progress(rowOf(cost))
      late += cost.lateSeconds
      if (cost.deliveries === 0) problems.push(`${cost.attack}: no honest reader got anything`)
      if (cost.kept * 2 > cost.newcomers)
        problems.push(`${cost.attack}: most newcomers were not greeted within ${greetedMs} ms`)
      if (cost.rss > budget.rssBytes) problems.push(`${cost.attack}: RSS is over ${megabytes(budget.rssBytes)}`)
    },
    onEnd({ deaths, start, end, keptKeys, mostCalls }) {
      progress(`RSS before the attacks ${megabytes(start.rss)}, ${megabytes(start.files)} of it of files`)
      progress(`RSS afterwards ${megabytes(end.rss)}, ${megabytes(end.files)} of it of files`)
      progress(`${late} seconds in which the p99 was over ${lateMs} ms`)
      if (late > budget.lateSeconds) problems.push(`p99 was over ${lateMs} ms for more than ${budget.lateSeconds} s`)
      problems.push(...deaths.map((death) => `The hub ended. ${death}`))
      if (end.rss > budget.recovered * start.rss)
        problems.push(`RSS did not come back to ${budget.recovered} of the start`)
      progress(`at most ${mostCalls} requests to the webhook at a time`)
      if (mostCalls > budget.webhookCalls)
        problems.push(`More than ${budget.webhookCalls} requests to the webhook at a time`)
      if (!keptKeys) problems.push('A publish that was sent again under its key was another event')
      for (const problem of problems) console.log(`FAILED: ${problem}`)
      if (problems.length > 0) process.exitCode = 1
    },
  }
}

export interface CostJudge {
  onCost(cost: AttackCost): void
  onEnd(outcome: HostileOutcome): void
}

// Late seconds are those whose p99 is over the bar; the p99 beside them is that of all others. `flush` is the
// slowest of the disk; `ran` and `waited` tell the hub's own
// work from time in which other processes had the processors.
const titles = ['RSS', 'of files', 'p99', 'late', 'p99 else', 'longest', 'flush', 'ran', 'waited', 'kept out']
const width = 8

function rowOf({ attack, died, ...cost }: AttackCost): string {
  const says = attacks.find(({ name }) => name === attack)?.says ?? ''
  const figures = [
    ...[megabytes(cost.rss), megabytes(cost.files), ms(cost.p99), `${cost.lateSeconds} s`, ms(cost.p99Otherwise)],
    ...[ms(cost.longestTurn), ms(cost.longestFlush), percent(cost.ran), percent(cost.waited)],
    `${cost.kept}/${cost.newcomers}`,
  ]
  const columns = figures.map((figure) => figure.padStart(width)).join(' ')
  return `${attack.padEnd(24)} ${columns}  ${died ? 'THE HUB ENDED  ' : ''}${says}`
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`
}

function ms(value: number): string {
  return `${value.toFixed(0)} ms`
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`
}
