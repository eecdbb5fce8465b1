// `npm run simulate -- --seeds 200000 --from 2000` plays that many histories; `--seed 17` plays one and tells it.
import { parseArgs } from 'node:util'
import { runVitest } from './vitest.js'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '10000' },
    from: { type: 'string', default: '0' },
    seed: { type: 'string' },
    mutant: { type: 'string' },
  },
})
const env = {
  ...process.env,
  SIMULATE_SEEDS: values.seeds,
  SIMULATE_FROM: values.from,
  ...(values.seed === undefined ? {} : { SIMULATE_SEED: values.seed }),
  ...(values.mutant === undefined ? {} : { SIMULATE_MUTANT: values.mutant }),
}
process.exitCode = runVitest(['--project=simulation-run', '--disable-console-intercept'], { env }) ?? 1
