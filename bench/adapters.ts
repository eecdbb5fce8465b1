/**
 * Fan-out to 1,000 readers through each adapter, beside that of Node's own server in the same run.
 *
 * Method: as in `fan-out`: a server on core 0, a load client with raw sockets on core 1, events of 200 bytes, published from
 * inside. Each adapter is measured at two rates: 5,000 events/s, for deliveries per second; and 50 events/s, so that there
 * is never more than one to send, for the processor time of a delivery. The adapters take turns, each run with new
 * processes; the figures are medians of the runs, as ratios to Node's adapter. `fetch` is the handler of the fetch standard
 * on `@hono/node-server`; Hono, on that same server, writes to Node's response.
 *
 * How it could mislead: a busy server makes longer turns of its event loop and with them larger writes, so that all of them
 * deliver what is offered, until the load client's core is full as well; what an adapter adds to each write shows only at
 * the low rate. The applications have no middleware. Compression, or anything else that wraps `response.write`, takes the
 * short way to the socket away, here and in every application. What Bun, Deno or a worker make of a `Response` is not
 * measured.
 */
import { type FanOutStep, openFanOut } from './load/fan-out.ts'
import { median } from './measure.ts'
import { numbersFrom } from './options.ts'
import { type Figure, report } from './report.ts'
import { adapters } from './subjects/node.ts'

const { readers, seconds, runs, rate } = numbersFrom({ readers: 1000, seconds: 2, runs: 3, rate: 5000 })
const quietRate = 50
const eventBytes = 200
const warmUpMs = 1000

type Adapter = (typeof adapters)[number]
type Step = FanOutStep & { readonly adapter: Adapter }
const steps: Step[] = []

for (let run = 0; run < runs; run += 1) {
  for (const adapter of adapters) {
    const fanOut = await openFanOut(adapter, { readers, eventBytes, warmUpMs, ms: seconds * 1000 })
    for (const offered of [quietRate, rate]) steps.push({ adapter, ...(await fanOut.step(offered)) })
    await fanOut.stop()
  }
}

report({
  bench: 'adapters',
  inputs: { readers, eventBytes, seconds, runs, warmUpMs },
  figures: adapters.filter((adapter) => adapter !== 'rejoin').flatMap(figuresOf),
  details: steps.map((step) => ({
    server: step.adapter,
    'offered/s': step.offered,
    'deliveries/s': step.perSecond,
    'p99 ms': step.p99Ms,
    'CPU µs/delivery': step.serverCpuMicrosPerDelivery,
    'server busy': step.serverBusy,
    'client busy': step.clientBusy,
    'others busy': step.othersBusy,
  })),
})

function figuresOf(adapter: Adapter): Figure[] {
  const deliveries = (of: Adapter) => medianOf(of, rate, (step) => step.perSecond)
  const cpu = (of: Adapter) => medianOf(of, quietRate, (step) => step.serverCpuMicrosPerDelivery)
  return [
    {
      what: `deliveries/s, ${adapter}, to Node’s`,
      value: deliveries(adapter) / deliveries('rejoin'),
      unit: '×',
      atLeast: 0.85,
    },
    {
      what: `CPU per delivery at ${quietRate}/s, ${adapter}, to Node’s`,
      value: cpu(adapter) / cpu('rejoin'),
      unit: '×',
    },
  ]
}

function medianOf(adapter: Adapter, offered: number, figure: (step: Step) => number): number {
  return median(steps.filter((step) => step.adapter === adapter && step.offered === offered).map(figure))
}
