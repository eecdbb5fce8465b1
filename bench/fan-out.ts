/**
 * Fan-out to 1,000 readers over sockets: deliveries per second, latency, processor time, beside better-sse and nchan.
 *
 * Method: each server is a process of its own on core 0, the load client another on core 1 (`taskset`). The client holds
 * 1,000 raw sockets, counts events by a marker byte, and takes latencies from a stamp in the events of 50 of them. The
 * stamp is the time at which the event was due, so an event that waits for a busy publisher is late. Events have 200
 * bytes of data, an id and a type. Each step has 1.5 s of warm-up, then an interval in which the client reads its own
 * counters and the server's /proc entries at the same two moments.
 *
 * - Saturation: the offered rate rises until deliveries grow by less than 5 %; the best step counts. Ours starts with its
 *   hot window filled, so that its memory is that of a hub that has run for long.
 * - Quiet: 50 events/s, so that there is never more than one to send. 5 runs, each with new processes, the servers in
 *   turn; the figures are medians.
 * - Shapes: every reader with a channel of its own (a tenth of the events, to one reader each) beside the shared one;
 *   TLS; nginx in front, which speaks HTTP/1.0 to the hub and runs on the load client's core.
 *
 * How it could mislead: the Node servers publish from inside, each event in a callback of its own, while nchan has to be
 * published to over HTTP, by the load client, on one connection with up to 32 requests under way. At the rates nchan
 * reaches, that is some hundred requests beside some hundred thousand deliveries, a few per cent of its time. A
 * publisher that calls better-sse or `res.write` several times in one callback lets Node join their writes; here it does
 * not, and ours joins the events of a whole turn of the event loop by itself. A busy server makes longer turns and with
 * them larger writes, so deliveries per second say little without the latency beside them. The load client has one core
 * too; what it reads late was still delivered, but its share shows in the latency ("client busy"). Over loopback the
 * sender pays for most of the receiver's TCP. Processor time is counted in ticks of 10 ms.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { makeCertificate } from '../test/support/certificate.ts'
import type { Measured } from './load/client.ts'
import { median } from './measure.ts'
import { numbersFrom } from './options.ts'
import { cores } from './processes/cores.ts'
import { type Figure, report } from './report.ts'
import { findNginx, startNginx } from './subjects/nginx.ts'
import { startFilledHub, startNode } from './subjects/node.ts'
import { peers, peersNote, type SubjectName, startSubject } from './subjects/start.ts'
import { type Load, type Subject, startLoad } from './subjects/subject.ts'

const { readers, seconds, runs, quietSeconds } = numbersFrom({ readers: 1000, seconds: 4, runs: 5, quietSeconds: 3 })
const eventBytes = 200
const warmUpMs = 1500
const barRate = 2500
const quietRate = 50
const ownEvery = 10

type Part = 'saturation' | 'quiet' | 'own and shared' | 'TLS' | 'HTTP/1.0, nginx'
type Step = Measured & { readonly part: Part; readonly server: string; readonly offered: number }
const steps: Step[] = []

await saturate('rejoin', [500, 1000, barRate, 2 * barRate])
for (const peer of peers) await saturate(peer, [100, 250, 500, 1000, barRate])
for (let run = 0; run < runs; run += 1) {
  for (const name of ['rejoin' as const, ...peers]) await quiet(name)
}
await ownAndShared()
await overTls()
await throughNginx()

report({
  bench: 'fan-out',
  inputs: { readers, eventBytes, seconds, quietSeconds, runs, warmUpMs, ownEvery, peers: peersNote },
  figures: [...saturationFigures(), ...quietFigures(), ...shapeFigures()],
  details: steps.map((step) => ({
    part: step.part,
    server: step.server,
    'offered/s': step.offered,
    'deliveries/s': step.perSecond,
    'p50 ms': step.p50Ms,
    'p99 ms': step.p99Ms,
    'CPU µs/delivery': step.serverCpuMicrosPerDelivery,
    'server busy': step.serverBusy,
    'client busy': step.clientBusy,
    'others busy': step.othersBusy,
    'RSS MB': step.serverPeakRss / 1e6,
  })),
})

async function saturate(name: SubjectName, rates: readonly number[]): Promise<void> {
  const start = (load: Load) => (name === 'rejoin' ? startFilledHub(eventBytes) : startSubject(name, load))
  await withReaders({ part: 'saturation', start }, async (measure) => {
    let best = 0
    for (const rate of rates) {
      const { perSecond } = await measure(rate, seconds)
      if (perSecond < best * 1.05) break
      best = perSecond
    }
  })
}

async function quiet(name: SubjectName): Promise<void> {
  await withReaders({ part: 'quiet', start: (load) => startSubject(name, load) }, (measure) =>
    measure(quietRate, quietSeconds),
  )
}

async function ownAndShared(): Promise<void> {
  const path = '/events?channel=shared&channel=own/{n}'
  const start = () => startFilledHub(eventBytes)
  await withReaders({ part: 'own and shared', start, path, ownEvery }, (measure) => measure(barRate, seconds))
}

async function overTls(): Promise<void> {
  const certificate = makeCertificate()
  if (!certificate) return
  await withReaders({ part: 'TLS', start: () => startNode('rejoin', certificate) }, (measure) =>
    measure(barRate, seconds),
  )
}

async function throughNginx(): Promise<void> {
  if (!findNginx()) return
  await withReaders({ part: 'HTTP/1.0, nginx', start: startBehindNginx }, (measure) => measure(barRate, seconds))
}

async function startBehindNginx(): Promise<Subject> {
  const hub = await startNode('rejoin')
  const server = `location / { proxy_pass http://127.0.0.1:${hub.port}; }`
  const nginx = await startNginx({ core: cores.load, modules: [], server })
  return {
    ...hub,
    port: nginx.port,
    async stop() {
      await nginx.stop()
      await hub.stop()
    },
  }
}

interface Setup {
  readonly part: Part
  start(load: Load): Promise<Subject>
  /** What the readers ask for instead of the shared channel. */
  readonly path?: string
  readonly ownEvery?: number
}

type Measure = (offered: number, forSeconds: number) => Promise<Step>

/** Starts a server and a load client with all its readers, and ends both after `use`. */
async function withReaders(setup: Setup, use: (measure: Measure) => Promise<unknown>): Promise<void> {
  const load = startLoad()
  const subject = await setup.start(load)
  const { name, port, tls, pids, readPath } = subject
  await load.call('connect', { port, tls, count: readers, path: setup.path ?? readPath })
  await use(async (offered, forSeconds) => {
    const publishing = { perSecond: offered, eventBytes, readers }
    await subject.publish(setup.ownEvery ? { ...publishing, ownEvery: setup.ownEvery } : publishing)
    await sleep(warmUpMs)
    const measured = await load.call('measure', { ms: forSeconds * 1000, serverPids: pids })
    await subject.stopPublishing()
    await load.call('settle', undefined)
    const step = { part: setup.part, server: name, offered, ...measured }
    steps.push(step)
    return step
  })
  await subject.stop()
  await load.stop()
}

function saturationFigures(): Figure[] {
  const atBar = stepsOf('saturation', 'rejoin').find(({ offered }) => offered === barRate)
  const ours = bestOf('rejoin')
  return [
    { what: `deliveries at ${barRate} events/s`, value: atBar?.perSecond, unit: '/s', atLeast: 1_500_000 },
    { what: `p99 at ${barRate} events/s`, value: atBar?.p99Ms, unit: 'ms', atMost: 50 },
    { what: `RSS at ${barRate} events/s`, value: atBar && atBar.serverPeakRss / 1e6, unit: 'MB', atMost: 150 },
    { what: 'best deliveries/s, to better-sse', value: ratio(ours, bestOf('better-sse')), unit: '×', atLeast: 8 },
    { what: 'best deliveries/s, to nchan', value: ratio(ours, bestOf('nchan')), unit: '×', atLeast: 5 },
    { what: 'best deliveries/s, to plain res.write', value: ratio(ours, bestOf('plain res.write')), unit: '×' },
  ]
}

function quietFigures(): Figure[] {
  const cpu = (server: string) => medianOf(server, (step) => step.serverCpuMicrosPerDelivery)
  const p99 = (server: string) => medianOf(server, (step) => step.p99Ms)
  const beside = (server: SubjectName, cpuAtMost: number): Figure[] => [
    {
      what: `CPU per delivery at ${quietRate}/s, to ${server}`,
      value: ratio(cpu('rejoin'), cpu(server)),
      unit: '×',
      atMost: cpuAtMost,
    },
    { what: `p99 at ${quietRate}/s, to ${server}`, value: ratio(p99('rejoin'), p99(server)), unit: '×', atMost: 1 },
  ]
  return [
    { what: `CPU per delivery at ${quietRate}/s`, value: cpu('rejoin'), unit: 'µs' },
    { what: `p99 at ${quietRate}/s`, value: p99('rejoin'), unit: 'ms' },
    ...beside('better-sse', 0.7),
    ...beside('nchan', 0.8),
  ]
}

function shapeFigures(): Figure[] {
  const single = stepsOf('saturation', 'rejoin').find(({ offered }) => offered === barRate)?.perSecond
  const rate = (part: Part) => stepsOf(part, 'rejoin')[0]?.perSecond
  const toSingle = (part: Part) => ({ what: `deliveries/s, ${part}, to one channel`, value: ratio(rate(part), single) })
  return [
    { ...toSingle('own and shared'), unit: '×', atLeast: 0.8 },
    { ...toSingle('TLS'), unit: '×' },
    { ...toSingle('HTTP/1.0, nginx'), unit: '×' },
  ]
}

function stepsOf(part: Part, server: string): Step[] {
  return steps.filter((step) => step.part === part && step.server === server)
}

/** Undefined for a server that is not on this machine. */
function bestOf(server: SubjectName): number | undefined {
  const rates = stepsOf('saturation', server).map(({ perSecond }) => perSecond)
  return rates.length === 0 ? undefined : Math.max(...rates)
}

function medianOf(server: string, figure: (step: Step) => number): number | undefined {
  const measured = stepsOf('quiet', server)
  return measured.length === 0 ? undefined : median(measured.map(figure))
}

function ratio(ours: number | undefined, theirs: number | undefined): number | undefined {
  return ours === undefined || theirs === undefined ? undefined : ours / theirs
}
