/**
 * When the readers of a hub that vanishes come back: how many in the worst second, in virtual time.
 *
 * Method: 50,000 readers connect to a hub on virtual time and hear one round of heartbeats. Then the hub is gone. Each reader
 * returns after the `retry:` that it was told last, as a native `EventSource` does; `@rejoin/client` adds up to 200 ms. `before`
 * draws from what hubs told until now: 2 s and up to a fifth more. `--svg <file>` writes both curves as a picture.
 *
 * How it could mislead: browsers add some jitter of their own, and a connection that fails is tried again later. Both
 * spread returns further than is shown.
 */
import { writeFileSync } from 'node:fs'
import { createHub } from '@rejoin/hub'
import { createSubscription, type Sink } from '@rejoin/hub/internal'
import { memoryLog } from '@rejoin/hub/memory'
import { createRandom, createVirtualEnvironment } from '@rejoin/hub/testing'
import { report } from './report.ts'

const readers = 50_000
const heartbeatMs = 25_000

const svgFile = process.argv[process.argv.indexOf('--svg') + 1]
const random = createRandom(1)
const before = Array.from({ length: readers }, () => 2000 * (1 + 0.2 * random()))
const after = await toldByHub()
if (process.argv.includes('--svg') && svgFile) writeFileSync(svgFile, drawCurves())

report({
  bench: 'returns',
  inputs: { readers, heartbeatMs },
  figures: [
    // Chance puts 2,000 ± 45 readers into a second of the range.
    { what: 'returns in the worst second', value: worstSecond(after), unit: 'readers', atMost: 2250 },
    { what: 'the last reader is back after', value: Math.max(...after) / 1000, unit: 's' },
  ],
  details: [summary('before', before), summary('now', after)],
})

/** What each reader was told last, in milliseconds. */
async function toldByHub(): Promise<number[]> {
  const environment = createVirtualEnvironment()
  const hub = await createHub({ log: memoryLog(), environment, heartbeatMs })
  const subscription = createSubscription(['news'])
  const told: number[] = []
  for (let reader = 0; reader < readers; reader += 1) {
    const sink: Sink = {
      pending: 0,
      write({ plain }) {
        const retry = /^retry: (\d+)/m.exec(Buffer.from(plain).toString('latin1'))?.[1]
        if (retry !== undefined) told[reader] = Number(retry)
        return true
      },
      end: () => undefined,
      destroy: () => undefined,
    }
    hub.port.subscribe({ kind: 'admitted', request: { subscription, start: { from: 'now' } } }, sink)
  }
  await environment.advance(heartbeatMs)
  return told
}

function summary(what: string, returns: readonly number[]) {
  const sorted = [...returns].sort((one, other) => one - other)
  const at = (part: number) => ((sorted[Math.floor(part * (sorted.length - 1))] ?? 0) / 1000).toFixed(1)
  return { what, 'worst second': worstSecond(returns), 'half are back, s': at(0.5), 'all are back, s': at(1) }
}

function worstSecond(returns: readonly number[]): number {
  return Math.max(...perBin(returns, 1000))
}

function perBin(returns: readonly number[], binMs: number): number[] {
  const bins: number[] = Array(Math.ceil(Math.max(...returns) / binMs) + 1).fill(0)
  for (const ms of returns) bins[Math.floor(ms / binMs)]! += 1
  return bins
}

/** Returns per second, in bins of 200 ms, on a scale of powers of ten: the two differ by a factor of 60. */
function drawCurves(): string {
  const [width, height, left, bottom] = [720, 320, 70, 50]
  const binMs = 200
  const lastMs = 30_000
  const x = (ms: number) => left + (ms / lastMs) * (width - left - 20)
  const y = (perSecond: number) => height - bottom - (Math.log10(Math.max(1, perSecond)) / 5.5) * (height - bottom - 20)
  const curve = (returns: readonly number[], colour: string) => {
    const points = perBin(returns, binMs).map((count, bin) => `${x(bin * binMs)},${y((count * 1000) / binMs)}`)
    return `<polyline points="${points.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>`
  }
  const label = (at: number, down: number, text: string, anchor = 'middle') =>
    `<text x="${at}" y="${down}" text-anchor="${anchor}">${text}</text>`
  const line = (x1: number, y1: number, x2: number, y2: number) =>
    `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="#ccc"/>`
  const rows = [1, 10, 100, 1000, 10_000, 100_000].map(
    (count) =>
      line(left, y(count), width - 20, y(count)) + label(left - 8, y(count) + 4, count.toLocaleString('en'), 'end'),
  )
  const columns = [0, 5, 10, 15, 20, 25, 30].map((second) =>
    label(x(second * 1000), height - bottom + 20, `${second} s`),
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">
<title>Returns per second after a hub of 50,000 readers vanished</title>
<rect width="${width}" height="${height}" fill="#fff"/>
${rows.join('\n')}
${columns.join('\n')}
${label(width / 2, height - 8, 'after the hub of 50,000 readers vanished: returns per second')}
${curve(before, '#c2410c')}
${curve(after, '#1d4ed8')}
<text x="${x(3200)}" y="${y(60_000)}" fill="#c2410c">before: 2 s and up to a fifth more</text>
<text x="${x(14_000)}" y="${y(4000)}" fill="#1d4ed8">now: a time of its own for each reader</text>
</svg>
`
}
