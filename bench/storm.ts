/**
 * 9,500 readers return at once, each 50 events behind: how long until all have everything, beside bare Node `http`.
 *
 * Method: `rejoin serve` with the embedded log is a process of its own on core 0, started as its users start it, and its
 * lines are read. The readers are raw sockets of a process on core 1 (`taskset`), a hundred from each address. They connect, are all
 * cut by a reset, miss 50 events of 200 bytes of data, and return in one go with the same cursor. A reader has everything when
 * it has got 50 events; one that gets more fails the run. Each turn has new processes and several storms; the first storm of a
 * process is a warm-up.
 *
 * Bare Node is `createServer` with the same backlog, which answers every request with the bytes that the hub had sent to one
 * reader: the same head, one `response.write`. It knows no cursors, no channels, no limits and no log.
 *
 * Meanwhile 100 live readers of another channel, in a third process on core 1, get 20 events/s. An event tells when it was due. As
 * root, that process comes before the returning readers on their core; otherwise its latency contains the time that it waited for
 * the core, which was up to 890 ms beside bare Node too.
 *
 * Processor time is that of the server, from the return until half a second after the last reader had everything; what the cut
 * costs has its own column. Memory is resident (VmRSS), with all readers connected, before the first storm and after the last.
 *
 * How it could mislead: loopback has no network, so all 9,500 handshakes are there at once, and the kernel accounts most of the
 * reader's TCP to the sender. With one cursor for all, the replays are the same bytes; `--cursors 50` spreads the readers over so
 * many cursors, up to twice as far behind. The time until all have everything needs two cores that do nothing else: it
 * includes what the load client takes to open its sockets. Processor time suffers less from other work, but it does.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Arrival, CrowdCommands } from './load/crowd.ts'
import { median } from './measure.ts'
import { numbersFrom } from './options.ts'
import { cores } from './processes/cores.ts'
import { startRemote } from './processes/remote.ts'
import { cpuMs, rssBytes } from './processes/usage.ts'
import { report } from './report.ts'
import type { BareReplayCommands } from './servers/bare-replay.ts'
import { startProgram } from './subjects/program.ts'
import { startLoad } from './subjects/subject.ts'
import { stampedEvent } from './traffic/event.ts'

const { readers, behind, storms, turns } = numbersFrom({ readers: 9500, behind: 50, storms: 3, turns: 3 })
const eventBytes = 200
const live = { readers: 100, perSecond: 20 }
const settleMs = 500
const calmMs = 5000
// Of first readers, who are not what is measured.
const connectingAtOnce = 200

interface Storm extends Arrival {
  readonly server: 'rejoin' | 'bare Node'
  readonly cutCpuMs: number
  readonly cpuMs: number
  readonly liveP99Ms: number
}
interface Memory {
  readonly before: number
  readonly after: number
}

/** A server whose readers return. */
interface Stormed {
  readonly name: Storm['server']
  readonly pid: number
  readonly port: number
  /** Makes all readers miss events. Gives the cursor of those who have missed them. */
  missEvents(): Promise<string>
  stop(): Promise<void>
}

const all: Storm[] = []
const memory: Record<Storm['server'], Memory[]> = { rejoin: [], 'bare Node': [] }
let sample: { greeting: string; replay: string } | undefined

for (let turn = 0; turn < turns; turn += 1) {
  await storm(await startHub())
  await storm(await startBare())
}

report({
  bench: 'storm',
  inputs: {
    readers,
    behind,
    'bytes of one replay': sample!.replay.length,
    storms,
    turns,
    'live readers': `${live.readers}, ${live.perSecond} events/s`,
  },
  figures: [
    { what: 'until all have everything, to bare Node', value: ratio('ms'), unit: '×', atMost: 1.8 },
    { what: 'processor time per return, to bare Node', value: ratio('cpuMs'), unit: '×', atMost: 1.6 },
    { what: 'processor time per return', value: (of('rejoin', 'cpuMs') * 1000) / readers, unit: 'µs' },
    { what: 'processor time per return, bare Node', value: (of('bare Node', 'cpuMs') * 1000) / readers, unit: 'µs' },
    { what: 'live readers meanwhile, p99', value: of('rejoin', 'liveP99Ms'), unit: 'ms', atMost: 250 },
    { what: 'the same, bare Node', value: of('bare Node', 'liveP99Ms'), unit: 'ms' },
    { what: 'memory after the last storm, to before', value: growth('rejoin'), unit: '×', atMost: 1.1 },
    { what: 'the same, bare Node', value: growth('bare Node'), unit: '×' },
  ],
  details: all.map(({ server, ms, halfMs, cpuMs, cutCpuMs, clientCpuMs, liveP99Ms }) => ({
    server,
    'half back, ms': halfMs,
    'all back, ms': ms,
    'CPU ms': cpuMs,
    'CPU of the cut, ms': cutCpuMs,
    'client CPU ms': clientCpuMs,
    'live p99 ms': liveP99Ms,
  })),
})

async function storm({ name, pid, port, missEvents, stop }: Stormed): Promise<void> {
  const crowd = startRemote<CrowdCommands>(new URL('./load/crowd.js', import.meta.url), { core: cores.load })
  const onlookers = startLoad({ first: true })
  const path = '/events/storm'
  await onlookers.call('connect', { port, tls: false, count: live.readers, path: '/events/live' })
  const publishing = { port, path: '/publish/live?type=tick', perSecond: live.perSecond, eventBytes }
  await onlookers.call('publish', { ...publishing, stamp: 'due' })
  await crowd.call('arrive', { port, path, count: readers, events: 0, atOnce: connectingAtOnce })
  await sleep(calmMs)
  const before = rssBytes([pid])
  for (let done = 0; done <= storms; done += 1) {
    const atCut = cpuMs([pid])
    await crowd.call('cut', undefined)
    await sleep(settleMs)
    const cursor = await missEvents()
    await sleep(settleMs)
    await onlookers.call('clearLatency', undefined)
    const atReturn = cpuMs([pid])
    const arrival = await crowd.call('arrive', { port, path, count: readers, cursor, events: behind, atOnce: readers })
    await sleep(settleMs)
    const { p99Ms: liveP99Ms } = await onlookers.call('latency', undefined)
    const used = { cutCpuMs: atReturn - atCut, cpuMs: cpuMs([pid]) - atReturn }
    if (done > 0) all.push({ server: name, ...arrival, ...used, liveP99Ms })
  }
  await sleep(calmMs)
  memory[name].push({ before, after: rssBytes([pid]) })
  await crowd.stop()
  await onlookers.stop()
  await stop()
}

async function startHub(): Promise<Stormed> {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-bench-'))
  const { pid, port, stop } = await startProgram(folder)
  const url = `http://127.0.0.1:${port}`
  let [cursor] = await publish(url, 1)
  return {
    name: 'rejoin',
    pid,
    port,
    async missEvents() {
      const missedFrom = cursor!
      cursor = (await publish(url, behind)).at(-1)
      sample = { greeting: await readSome(url, undefined, 0), replay: await readSome(url, missedFrom, behind) }
      return missedFrom
    },
    async stop() {
      await stop()
      rmSync(folder, { recursive: true })
    },
  }
}

async function startBare(): Promise<Stormed> {
  const program = new URL('./servers/bare-replay.js', import.meta.url)
  const server = startRemote<BareReplayCommands>(program, { core: cores.server })
  const port = await server.call('listen', undefined)
  await server.call('hold', sample!)
  return { name: 'bare Node', pid: server.pid, port, missEvents: async () => 'any', stop: server.stop }
}

async function publish(url: string, count: number): Promise<string[]> {
  const event = { channel: 'storm', type: 'tick', data: stampedEvent(eventBytes, 0) }
  const answer = await fetch(`${url}/publish`, { method: 'POST', body: JSON.stringify(Array(count).fill(event)) })
  const { events } = (await answer.json()) as { events: { id: string }[] }
  return events.map(({ id }) => id)
}

/** What one reader is sent, until it has so many events. */
async function readSome(url: string, cursor: string | undefined, events: number): Promise<string> {
  const over = new AbortController()
  const headers: Record<string, string> = cursor === undefined ? {} : { 'Last-Event-ID': cursor }
  const { body } = await fetch(`${url}/events/storm`, { headers, signal: over.signal })
  let text = ''
  for await (const part of body!.pipeThrough(new TextDecoderStream())) {
    text += part
    if (text.split('~').length > events && text.endsWith('\n\n')) break
  }
  over.abort()
  return text
}

function ratio(figure: 'ms' | 'cpuMs'): number {
  return of('rejoin', figure) / of('bare Node', figure)
}

function of(server: Storm['server'], figure: 'ms' | 'cpuMs' | 'liveP99Ms'): number {
  return median(all.filter((storm) => storm.server === server).map((storm) => storm[figure]))
}

function growth(server: Storm['server']): number {
  return median(memory[server].map(({ before, after }) => after / before))
}
