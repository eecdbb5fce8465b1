/**
 * Memory of 10,000 idle connections: resident bytes for each, beside better-sse, plain res.write and nchan.
 *
 * Method: each server is a process of its own with a load client of its own, which opens 10,000 raw sockets to it, sends
 * a request on each and waits for the answer. The figure is what the server's resident memory (VmRSS of /proc) has
 * grown by, from right before the first connection to 60 s after the last, divided by the connections. Nothing is
 * published; heartbeats run at their defaults. No collection is forced for the figure that has the bar; after it was
 * read, the Node servers are made to collect and are read again. All servers wait at the same time.
 *
 * How it could mislead: the kernel's memory for a socket, some kilobytes and its buffers, is in nobody's resident
 * memory. A Node process that has just started grows by some megabytes whatever it does, here spread over 10,000
 * connections. How much garbage is left after 60 s is up to the engine. A connection that has been written to for a
 * while may keep more than one that has only been opened.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { numbersFrom } from './options.ts'
import { rssBytes } from './processes/usage.ts'
import { report } from './report.ts'
import { peers, peersNote, type SubjectName, startSubject } from './subjects/start.ts'
import { startLoad } from './subjects/subject.ts'

const { connections, waitSeconds } = numbersFrom({ connections: 10_000, waitSeconds: 60 })

interface Held {
  readonly server: SubjectName
  readonly before: number
  readonly after: number
  /** After a forced collection; undefined for a server that has nothing to collect. */
  readonly collected: number | undefined
}

const held = await Promise.all([hold('rejoin'), ...peers.map(hold)])
const perConnection = (bytes: number) => bytes / connections / 1000
const nchan = held.find(({ server }) => server === 'nchan')
// Where there is no nchan to compare with, what it had on the development machine.
const barKilobytes = nchan ? perConnection(nchan.after - nchan.before) : 10.3

report({
  bench: 'memory',
  inputs: {
    connections,
    waitSeconds,
    'collection forced': 'no; what a forced one leaves has its own line',
    peers: peersNote,
  },
  figures: held.flatMap(({ server, before, after, collected }) => [
    {
      what: `${server}, RSS per connection`,
      value: perConnection(after - before),
      unit: 'KB',
      ...(server === 'rejoin' ? { atMost: barKilobytes, note: 'not more than nchan’s' } : {}),
    },
    ...(collected === undefined
      ? []
      : [{ what: `${server}, after a forced collection`, value: perConnection(collected - before), unit: 'KB' }]),
  ]),
  details: held.map(({ server, before, after, collected }) => ({
    server,
    'RSS before MB': before / 1e6,
    'RSS after MB': after / 1e6,
    'collected MB': collected === undefined ? '' : collected / 1e6,
  })),
})

async function hold(name: SubjectName): Promise<Held> {
  const load = startLoad()
  const { port, tls, pids, readPath, server, stop } = await startSubject(name, load)
  const before = rssBytes(pids)
  await load.call('connect', { port, tls, count: connections, path: readPath })
  await sleep(waitSeconds * 1000)
  const after = rssBytes(pids)
  await server?.call('collectGarbage', undefined)
  const collected = server && rssBytes(pids)
  await stop()
  await load.stop()
  return { server: name, before, after, collected }
}
