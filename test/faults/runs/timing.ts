/** 10,000 probes of each kind: how long an answer takes tells neither keys, nor tokens, nor which channels exist. */

import { announceRun } from '../long-run.ts'
import { runTiming, telling } from '../requests/timing.ts'

const { inputs, progress } = announceRun('timing', { probes: 10_000 })
const outcomes = await runTiming({ ...inputs, onProgress: (what) => progress(`${what} compared`) })

for (const { what, nearUs, farUs, t } of outcomes) {
  const times = `${nearUs.toFixed(2)} µs near, ${farUs.toFixed(2)} µs far`
  console.log(`${what.padEnd(13)} ${times}, t = ${t.toFixed(2)}`)
}
const wrong = outcomes.filter(({ what, t }) => Math.abs(t) > telling !== (what === 'control'))
progress(
  wrong.length === 0 ? 'only the control can be told apart' : `WRONG: ${wrong.map(({ what }) => what).join(', ')}`,
)
if (wrong.length > 0) process.exitCode = 1
