/**
 * Every mend of the logs undone in turn: is the test that goes with it seen to fail?
 *
 * A test that passes proves little unless it is seen to fail. `--only 3` undoes the third alone. Needs Redis.
 */
import { spawnSync } from 'node:child_process'
import { announceRun } from '../long-run.ts'
import { type Mend, mends } from '../mends/mends.ts'

const { inputs, progress } = announceRun('mends', { only: 0 })
const chosen = mends.filter((_, index) => inputs.only === 0 || index === inputs.only - 1)
const unseen = chosen.filter((mend) => !isCaught(mend)).map(({ name }) => name)
console.log(unseen.length === 0 ? 'PASSED' : `FAILED: ${unseen.join(', ')}`)
if (unseen.length > 0) process.exitCode = 1

/** The test has to run and pass on the sources as they are, and to run and fail without the mend. */
function isCaught({ name, mistake, caughtBy }: Mend): boolean {
  const [now, undone] = [outcomeOf(caughtBy), outcomeOf(caughtBy, name)]
  const caught = now === 'passed' && undone === 'failed'
  progress(`${caught ? 'caught' : `NOT CAUGHT (now ${now}, undone ${undone})`}  ${name}: whoever ${mistake}`)
  return caught
}

function outcomeOf({ project, file, test }: Mend['caughtBy'], undone = ''): 'passed' | 'failed' | 'not run' {
  const only = test.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const { stdout } = spawnSync(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', 'run', '--reporter=json', `--project=${project}`, file, '-t', only],
    { encoding: 'utf8', env: { ...process.env, UNDONE_MEND: undone }, maxBuffer: 1e9 },
  )
  const found = /\{"numTotalTestSuites".*\}/s.exec(stdout)
  if (!found) return 'not run'
  const { numPassedTests, numFailedTests } = JSON.parse(found[0]) as Record<string, number>
  if (numFailedTests) return 'failed'
  return numPassedTests ? 'passed' : 'not run'
}
