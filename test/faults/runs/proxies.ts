/**
 * Five proxies, each with a plain configuration and with ours: delays, caching, 70 s of quiet. Prints the table of the guide.
 *
 * Needs nginx, HAProxy, Varnish, Caddy and Apache on the PATH. Times are measured one proxy after the other, then all of
 * them carry a quiet stream side by side.
 */

import { proxyKindNames } from '../../support/proxies/kinds.ts'
import { announceRun } from '../long-run.ts'
import { consultDoctor, type Front, type Measured, measureTimes, openFront, versionOf } from '../proxies/measure.ts'
import { tableOf } from '../proxies/table.ts'

const { inputs, progress } = announceRun('proxies', { idle: 70 })
const fronts: Front[] = []
for (const proxy of proxyKindNames) {
  for (const configuration of ['plain', 'ours'] as const) fronts.push(await openFront(proxy, configuration))
}

const times = new Map<Front, Pick<Measured, 'firstByteMs' | 'delayP99Ms'>>()
for (const front of fronts) {
  times.set(front, await measureTimes(front))
  progress(`${front.proxy}, ${front.configuration}: timed`)
}
const measured: Measured[] = await Promise.all(
  fronts.map(async (front) => {
    const { proxy, configuration } = front
    const found = await consultDoctor(front, `${inputs.idle}s`)
    return { proxy, configuration, version: await versionOf(proxy), ...times.get(front)!, ...found }
  }),
)
await Promise.all(fronts.map((front) => front.close()))

console.log(`\n${tableOf(measured)}\n`)
const missed = measured.filter(({ configuration }) => configuration === 'ours').flatMap(missedBars)
progress(missed.length === 0 ? 'our configurations meet every bar' : `MISSED: ${missed.join('; ')}`)
if (missed.length > 0) process.exitCode = 1

function missedBars({ proxy, firstByteMs, delayP99Ms, states, fastMs }: Measured): string[] {
  // Apache looks at its client only when it writes to it: no setting makes it notice a reader that left.
  const excused = proxy === 'apache' ? ['disconnect', 'cors'] : ['cors']
  const wrong = Object.entries(states).filter(([name, state]) => state !== 'good' && !excused.includes(name))
  return [
    ...(firstByteMs > 200 ? [`${proxy}: first byte after ${firstByteMs.toFixed(0)} ms, over 200`] : []),
    ...(delayP99Ms > 100 ? [`${proxy}: delay p99 ${delayP99Ms.toFixed(0)} ms, over 100`] : []),
    ...(fastMs > 10_000 ? [`${proxy}: the doctor took ${fastMs} ms, over 10,000`] : []),
    ...wrong.map(([name, state]) => `${proxy}: ${name} is ${state}`),
  ]
}
