/**
 * What access rules, limits and metrics cost: the program with all of them beside a bare hub, in fan-out and publishing.
 *
 * Method: two servers on core 0, and a load client on core 1 that turns to one of them at a time, each run with new
 * processes. Both keep their events in memory. The bare one is `nodeHandler(hub)` on Node's server; the other is what
 * `rejoin serve` runs, with an API key for publishers, rights for anonymous readers, every limit set, metrics and the
 * admin API.
 *
 * - Fan-out: 1,000 readers of one channel, events of 200 bytes, published from inside at two rates: 2,500 events/s for
 *   deliveries per second, and 50 events/s for the processor time of a delivery.
 * - Publishing: 64 connections with one event per request, then 16 with batches of 100, as fast as they are answered. Both
 *   servers are warmed up before.
 *
 * The servers take turns of a second or two, and each turn of one is held against the other's next to it, because a shared
 * machine is up to a third slower from one second to another. The figures are medians of these ratios. On a machine that
 * does something else besides, processor time is the one to go by.
 *
 * How it could mislead: in memory an append costs next to nothing, so that what a request costs besides weighs more than it
 * does with a log on disk. A token that has to be verified anew costs more than a key, once per token. Nobody reads
 * `/metrics` meanwhile, and no lines are printed.
 */
import { type FanOutStep, openFanOut } from './load/fan-out.ts'
import type { Published, PublisherCommands, PublishRun } from './load/publishers.ts'
import { median } from './measure.ts'
import { numbersFrom } from './options.ts'
import { cores } from './processes/cores.ts'
import { startRemote } from './processes/remote.ts'
import { cpuMs } from './processes/usage.ts'
import { report } from './report.ts'
import { programToken } from './servers/program-token.ts'
import { startNode } from './subjects/node.ts'
import type { Subject } from './subjects/subject.ts'

const { readers, seconds, runs } = numbersFrom({ readers: 1000, seconds: 2, runs: 3 })
const eventBytes = 200
const warmUpMs = 1000
// Until its code is compiled a server is several times slower, the program for longer, as it has more of it: after this
// long neither gets any faster.
const publishWarmUpMs = 10_000
const fanOutTurns = 2
const turns = 8
const turnMs = 1000
const rate = 2500
const quietRate = 50

const nameOf = { bare: 'rejoin', program: 'rejoin, program' } as const
type Turn = Published & { readonly microsPerEvent: number }
type Figure = 'eventsPerSecond' | 'p99Ms' | 'microsPerEvent'
const shapes = [
  { connections: 64, batch: 1 },
  { connections: 16, batch: 100 },
] as const

const deliveries: { readonly bare: FanOutStep; readonly program: FanOutStep }[] = []
const pairs: { readonly batch: number; readonly bare: Turn; readonly program: Turn }[] = []

for (let run = 0; run < runs; run += 1) {
  await fanOut()
  for (const shape of shapes) await publish(shape)
}

report({
  bench: 'program',
  inputs: { readers, eventBytes, seconds, runs, warmUpMs, publishWarmUpMs, fanOutTurns, turns, turnMs },
  figures: [
    { what: `deliveries/s at ${rate} events/s`, value: delivered(rate, 'perSecond'), unit: '×', atLeast: 0.9 },
    {
      what: `CPU per delivery at ${quietRate} events/s`,
      value: delivered(quietRate, 'serverCpuMicrosPerDelivery'),
      unit: '×',
      atMost: 1.1,
    },
    ...shapes.flatMap(({ batch }) => [
      { what: `events/s, ${batch} per request`, value: paired(batch, 'eventsPerSecond'), unit: '×', atLeast: 0.9 },
      { what: `CPU per event, ${batch} per request`, value: paired(batch, 'microsPerEvent'), unit: '×' },
    ]),
  ],
  details: [
    ...[quietRate, rate].flatMap((offered) =>
      (['bare', 'program'] as const).map((side) => ({
        server: nameOf[side],
        what: `fan-out, ${offered}/s`,
        'per second': median(stepsAt(offered).map((pair) => pair[side].perSecond)),
        'p99 ms': median(stepsAt(offered).map((pair) => pair[side].p99Ms)),
        'CPU µs': median(stepsAt(offered).map((pair) => pair[side].serverCpuMicrosPerDelivery)),
      })),
    ),
    ...shapes.flatMap(({ batch }) =>
      (['bare', 'program'] as const).map((side) => ({
        server: nameOf[side],
        what: `publishing, ${batch} per request`,
        'per second': medianTurn(batch, side, 'eventsPerSecond'),
        'p99 ms': medianTurn(batch, side, 'p99Ms'),
        'CPU µs': medianTurn(batch, side, 'microsPerEvent'),
      })),
    ),
  ],
})

async function fanOut(): Promise<void> {
  const run = { readers, eventBytes, warmUpMs, ms: seconds * 1000 }
  const [bare, program] = [await openFanOut('rejoin', run), await openFanOut('rejoin, program', run)]
  for (let pair = 0; pair < fanOutTurns; pair += 1) {
    for (const offered of [quietRate, rate]) {
      const done = await inTurns(pair, bare, program, ({ step }) => step(offered))
      deliveries.push(done)
    }
  }
  await bare.stop()
  await program.stop()
}

async function publish(shape: Pick<PublishRun, 'connections' | 'batch'>): Promise<void> {
  const load = startRemote<PublisherCommands>(new URL('./load/publishers.js', import.meta.url), { core: cores.load })
  const [bare, program] = [await startNode('rejoin'), await startNode('rejoin, program')]

  async function turn({ port, pids }: Subject, ms: number): Promise<Turn> {
    const run = { port, ...shape, eventBytes, token: programToken, warmUpMs: 0, ms }
    const before = cpuMs(pids)
    const done = await load.call('publish', run)
    return { ...done, microsPerEvent: ((cpuMs(pids) - before) * 1000) / done.events }
  }

  await turn(bare, publishWarmUpMs)
  await turn(program, publishWarmUpMs)
  for (let pair = 0; pair < turns; pair += 1) {
    const done = await inTurns(pair, bare, program, (subject) => turn(subject, turnMs))
    pairs.push({ batch: shape.batch, ...done })
  }
  await load.stop()
  await bare.stop()
  await program.stop()
}

/** One after the other. Whoever is first takes turns too: what one leaves behind in the machine, the other finds. */
async function inTurns<Side, Done>(
  pair: number,
  bare: Side,
  program: Side,
  measure: (side: Side) => Promise<Done>,
): Promise<{ bare: Done; program: Done }> {
  if (pair % 2 === 0) return { bare: await measure(bare), program: await measure(program) }
  const first = await measure(program)
  return { bare: await measure(bare), program: first }
}

/** Of the program to the bare hub, turn by turn. */
function delivered(offered: number, figure: 'perSecond' | 'serverCpuMicrosPerDelivery'): number {
  return median(stepsAt(offered).map(({ bare, program }) => program[figure] / bare[figure]))
}

function stepsAt(offered: number): typeof deliveries {
  return deliveries.filter(({ bare }) => bare.offered === offered)
}

/** Of the program to the bare hub, turn by turn. */
function paired(batch: number, figure: Figure): number {
  return median(pairsOf(batch).map(({ bare, program }) => program[figure] / bare[figure]))
}

function medianTurn(batch: number, side: 'bare' | 'program', figure: Figure): number {
  return median(pairsOf(batch).map((pair) => pair[side][figure]))
}

function pairsOf(batch: number): typeof pairs {
  return pairs.filter((pair) => pair.batch === batch)
}
