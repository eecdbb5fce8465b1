import type { StormPlan, StormProgress } from '@rejoin/storm'
import { durationWords } from '../../logging/duration.ts'
import { hasColour, styled } from '../../logging/style.ts'
import { table } from '../../logging/table.ts'
import { createLiveView } from '../live-view.ts'
import type { ProgramHost } from '../program-host.ts'
import { faultWords, grouped, percent, timesWords } from './storm-words.ts'

/** Shows the progress of a storm: a view that is rewritten on a terminal; in a pipe, a line every five seconds. */
export interface StormView {
  show(progress: StormProgress): void
  clear(): void
}

export function watchStorm(url: string, plan: StormPlan, host: ProgramHost): StormView {
  const { stderr, env } = host
  const view = createLiveView(host)
  const colour = hasColour(stderr, env)
  let saidAt = performance.now()
  return {
    show(progress) {
      if (view.isShown) return view.show(viewLines(url, plan, progress, colour))
      if (performance.now() - saidAt < lineEveryMs) return
      saidAt = performance.now()
      stderr.write(`rejoin: ${progressLine(plan, progress)}\n`)
    },
    clear: view.clear,
  }
}

// More lines would bury the result in the log of a CI run.
const lineEveryMs = 5000

export function viewLines(url: string, plan: StormPlan, progress: StormProgress, colour: boolean): string[] {
  const { connected, published, delivered, cuts, returns, gaps, faults, delayMs, catchUpMs, own } = progress
  const isBroken = Object.values(faults).some((count) => count > 0)
  const load = `${percent(own.cpu)} of one core`
  const rows = [
    ['readers', `${bar(connected / plan.readers)} ${grouped(connected)} of ${grouped(plan.readers)} connected`],
    ['events', `${grouped(published)} published, ${grouped(delivered)} delivered`],
    ['delay', timesWords(delayMs)],
    ['cuts', grouped(cuts)],
    ['returns', `${grouped(returns)}, up to date after ${timesWords(catchUpMs)}`],
    ['faults', styled(isBroken ? 'red' : 'green', faultWords(faults), colour)],
    ['gaps', `${grouped(gaps)} announced`],
    ['own load', own.wasBottleneck ? styled('yellow', load, colour) : load],
  ]
  return [
    `${styled('bold', url, colour)}  ${stageWords(plan, progress)}`,
    ...table(rows.map(([name = '', text = '']) => [styled('dim', name, colour), text])).map((line) => `  ${line}`),
  ]
}

export function progressLine(plan: StormPlan, progress: StormProgress): string {
  const { connected, published, delivered, faults } = progress
  const readers = `${grouped(connected)} of ${grouped(plan.readers)} readers connected`
  const events = `${grouped(published)} events published, ${grouped(delivered)} delivered`
  return `${stageWords(plan, progress)}: ${readers}, ${events}; ${faultWords(faults)}`
}

function stageWords({ forMs }: StormPlan, { stage, stageMs }: StormProgress): string {
  if (stage === 'connecting') return 'connecting'
  if (stage === 'settling') return 'waiting for the last events'
  return `${Math.floor(stageMs / 1000)} s of ${durationWords(forMs)}`
}

function bar(part: number): string {
  const full = Math.round(part * barWidth)
  return '█'.repeat(full) + '░'.repeat(barWidth - full)
}

const barWidth = 24
