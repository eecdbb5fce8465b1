/**
 * A bit changed in each of 1,000 places of a log's file, and its end cut off: is anything wrong, or lost in silence?
 *
 * 300 more bits are changed where pages begin, and the end is cut off at 100 places. Each copy is opened by a process that may die of it, read from several places, published to and read again.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DamageOutcome, runDamage } from '../disk/damage.ts'
import { announceRun } from '../long-run.ts'

const { inputs, progress } = announceRun('damage', { flips: 1000, aimed: 300, truncations: 100 })
const directory = mkdtempSync(join(tmpdir(), 'rejoin-damage-'))
const outcomes = await runDamage({
  ...{ ...inputs, directory },
  onProgress(done) {
    if (done % 100 === 0) progress(`${done} of ${inputs.flips + inputs.aimed + inputs.truncations}`)
  },
})
rmSync(directory, { recursive: true })

const ends = ['whole', 'told', 'rejected', 'died', 'stuck', 'wrong'] as const
const places = [...new Set(outcomes.map(placeOf))].sort()
console.log(`\n${''.padEnd(12)}${ends.map((end) => end.padStart(9)).join('')}`)
for (const place of places) {
  const counts = ends.map((end) => outcomes.filter((each) => placeOf(each) === place && endOf(each) === end).length)
  console.log(`${place.padEnd(12)}${counts.map((count) => String(count).padStart(9)).join('')}`)
}
const bad = outcomes.filter(isBad)
for (const message of new Set(bad.map(messageOf))) {
  const examples = bad.filter((each) => messageOf(each) === message)
  console.log(`\n${examples.length} × ${message}`)
  console.log(`  such as ${JSON.stringify(examples[0]?.damage)} in ${examples[0]?.page}`)
}
if (outcomes.some((each) => endOf(each) === 'wrong')) process.exitCode = 1

function placeOf({ damage, page }: DamageOutcome): string {
  return damage.kind === 'truncate' ? 'end' : page
}

/** `whole`: everything was there. `told`: something was gone, and every reader that lacked it was told. */
function endOf({ end, gaps = 0, unavailable = 0, wrong = [] }: DamageOutcome): (typeof ends)[number] {
  if (wrong.length > 0) return 'wrong'
  // The sample has been trimmed: one reader of each of its three channels starts before what it holds.
  if (end === 'served') return gaps > 3 || unavailable > 0 ? 'told' : 'whole'
  return end
}

function isBad(outcome: DamageOutcome): boolean {
  return ['died', 'stuck', 'wrong'].includes(endOf(outcome))
}

function messageOf({ end, message = '', wrong = [] }: DamageOutcome): string {
  const text = wrong[0] ?? `${end}: ${message}`
  return text.replaceAll(/[0-9A-Z]{26}/g, 'id').slice(0, 1500)
}
