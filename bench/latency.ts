/**
 * Latency of an idle hub: from the publish over HTTP to the one reader, over loopback.
 *
 * Method: one process posts an event every 10 ms over a connection it keeps alive, and reads the stream on another. The
 * event tells when it was handed to the socket, and its age is taken when it is read, so the figure holds both ways,
 * parsing, the append to the memory log, and the turn of the hub. 1 s of warm-up, then 10 s. The server is on core 0,
 * the client on core 1 (`taskset`).
 *
 * How it could mislead: loopback has no network. A machine that is otherwise idle may put its cores to sleep between two
 * events, which a busy one does not. The peers have no log: they pass the event on at once, and nchan keeps it in shared
 * memory.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Measured } from './load/client.ts'
import { numbersFrom } from './options.ts'
import { report } from './report.ts'
import { peers, peersNote, type SubjectName, startSubject } from './subjects/start.ts'
import { startLoad } from './subjects/subject.ts'

const { seconds } = numbersFrom({ seconds: 10 })
const eventBytes = 200
const perSecond = 100
const barMs = 1

const measured: (Measured & { server: SubjectName })[] = []
for (const name of ['rejoin' as const, ...peers]) measured.push(await measure(name))

report({
  bench: 'latency',
  inputs: { seconds, perSecond, eventBytes, peers: peersNote },
  figures: measured.map(({ server, p50Ms }) => ({
    what: `${server}, publish to delivery, p50`,
    value: p50Ms,
    unit: 'ms',
    ...(server === 'rejoin' ? { atMost: barMs } : {}),
  })),
  details: measured.map(({ server, samples, p50Ms, p99Ms, maxMs }) => ({
    server,
    samples,
    'p50 ms': p50Ms,
    'p99 ms': p99Ms,
    'max ms': maxMs,
  })),
})

async function measure(name: SubjectName): Promise<Measured & { server: SubjectName }> {
  const load = startLoad()
  const { port, tls, pids, readPath, publishPath: path, stop } = await startSubject(name, load)
  await load.call('connect', { port, tls, count: 1, path: readPath })
  await load.call('publish', { port, path, perSecond, eventBytes, stamp: 'sent' })
  await sleep(1000)
  const figures = await load.call('measure', { ms: seconds * 1000, serverPids: pids })
  await load.call('stopPublishing', undefined)
  await stop()
  await load.stop()
  return { server: name, ...figures }
}
