/**
 * Readers that stop reading: what one costs in memory, what it does to the other 999, and whether 500 leave anything.
 *
 * Method: 999 readers on raw sockets, 1,000 events/s of 200 bytes, the server on core 0 and the load client on core 1
 * (`taskset`). The hub starts with its hot window filled, so that it does not grow by itself. Then
 *
 * - one more reader connects and never reads, for 30 s. Its cost is the bytes that wait for it in the server process at
 *   the end. The p99 of the others is compared with the mean of 15 s before and 15 s after.
 * - 500 more connect and do not read for 30 s, then read on, catch up, and hang up. Resident memory (VmRSS of /proc, no
 *   collection forced) is compared with that before they came: at its highest, for the cost of each, and 10 s after they
 *   left, for what is left of them.
 * - The peers get 20 readers, which they can serve at that rate, and one more that does not read for 30 s.
 *
 * How it could mislead: the kernel takes some megabytes for a reader that does not read before the server notices ("the
 * kernel took"), which are in nobody's resident memory. A reader that has read fast before it stops has larger buffers
 * there, and is noticed later. Readers that stop together wait for the same shared bytes, so 500 that stop one by one
 * cost more than is shown for each. Objects around a stalled reader, some kilobytes, are lost in the noise of a process
 * that makes a million deliveries a second; so is much of what a p99 of two intervals tells.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { numbersFrom } from './options.ts'
import { rssBytes } from './processes/usage.ts'
import { report } from './report.ts'
import { startFilledHub } from './subjects/node.ts'
import { peers, peersNote, type SubjectName, startSubject } from './subjects/start.ts'
import { type Load, type Subject, startLoad } from './subjects/subject.ts'

const { readers, many, peerReaders, perSecond, seconds, calmSeconds } = numbersFrom({
  readers: 999,
  many: 500,
  peerReaders: 20,
  perSecond: 1000,
  seconds: 30,
  calmSeconds: 15,
})
const eventBytes = 200
const warmUpMs = 3000
const afterMs = 10_000

interface Episode {
  readonly server: string
  readonly stalled: number
  readonly p99Ms: number
  /** In the server's process, for the reader that it holds most for; undefined for nchan, which does not tell. */
  readonly waitingBytes?: number
  readonly sentBytes?: number
  readonly rssBefore: number
  readonly rssPeak: number
}

const episodes: Episode[] = []
const { calmP99Ms, one, several, rssAfter, rssCollected } = await stallOurs()
for (const name of peers) await stallPeer(name)

report({
  bench: 'stall',
  inputs: { readers, many, peerReaders, perSecond, eventBytes, seconds, calmSeconds, peers: peersNote },
  figures: [
    { what: 'waiting for one stalled reader', value: kilobytes(one.waitingBytes), unit: 'KB', atMost: 256 },
    { what: 'p99 of the others, to that without it', value: one.p99Ms / calmP99Ms, unit: '×', atMost: 1.2 },
    {
      what: `RSS for each of ${many} stalled`,
      value: kilobytes((several.rssPeak - several.rssBefore) / many),
      unit: 'KB',
      atMost: 256,
    },
    { what: `RSS after ${many} stalled, to before`, value: rssAfter / several.rssBefore, unit: '×', atMost: 1.1 },
    { what: 'the same after a forced collection', value: rssCollected / several.rssBefore, unit: '×' },
  ],
  details: episodes.map((episode) => ({
    server: episode.server,
    readers: episode.server === 'rejoin' ? readers : peerReaders,
    stalled: episode.stalled,
    'p99 ms of the others': episode.p99Ms,
    'waiting KB': kilobytes(episode.waitingBytes) ?? '',
    'kernel took KB': kilobytes(episode.sentBytes) ?? '',
    'RSS before MB': episode.rssBefore / 1e6,
    'RSS peak MB': episode.rssPeak / 1e6,
  })),
})

async function stallOurs() {
  const load = startLoad()
  const subject = await startFilledHub(eventBytes)
  await connectAndPublish(subject, load, readers)

  const before = await runEpisode(subject, load, 0)
  const one = await runEpisode(subject, load, 1)
  await load.call('catchUp', undefined)
  const after = await runEpisode(subject, load, 0)
  const several = await runEpisode(subject, load, many)
  await load.call('catchUp', undefined)
  await sleep(afterMs)
  const rssAfter = rssBytes(subject.pids)
  await subject.server.call('collectGarbage', undefined)
  const rssCollected = rssBytes(subject.pids)

  await stop(subject, load)
  return { calmP99Ms: (before.p99Ms + after.p99Ms) / 2, one, several, rssAfter, rssCollected }
}

async function stallPeer(name: SubjectName): Promise<void> {
  const load = startLoad()
  const subject = await startSubject(name, load)
  await connectAndPublish(subject, load, peerReaders)
  await runEpisode(subject, load, 1)
  await stop(subject, load)
}

async function connectAndPublish(subject: Subject, load: Load, count: number): Promise<void> {
  const { port, tls, readPath: path } = subject
  await load.call('connect', { port, tls, count, path })
  await subject.publish({ perSecond, eventBytes, readers: count })
  await sleep(warmUpMs)
}

/** Measures the readers while that many others are connected and do not read. */
async function runEpisode(subject: Subject, load: Load, stalled: number): Promise<Episode> {
  const { name, port, tls, readPath: path, pids: serverPids, server } = subject
  const rssBefore = rssBytes(serverPids)
  if (stalled > 0) await load.call('connectStalled', { port, tls, count: stalled, path })
  const ms = (stalled > 0 ? seconds : calmSeconds) * 1000
  const { p99Ms, serverPeakRss: rssPeak } = await load.call('measure', { ms, serverPids })
  const held = stalled === 1 ? await server?.call('mostWaiting', undefined) : undefined
  const episode = { server: name, stalled, p99Ms, rssBefore, rssPeak, ...held }
  episodes.push(episode)
  return episode
}

async function stop(subject: Subject, load: Load): Promise<void> {
  await subject.stopPublishing()
  await subject.stop()
  await load.stop()
}

function kilobytes(bytes: number | undefined): number | undefined {
  return bytes === undefined ? undefined : bytes / 1000
}
