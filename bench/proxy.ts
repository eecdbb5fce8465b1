/**
 * What nginx with our configuration adds to the delay of an event, against the same hub without it.
 *
 * Method: `rejoin serve` in a process of its own, with the memory log, and nginx in another. This process posts 100 events a second to
 * the hub and reads each twice, from the hub and through nginx, both streams open at once. An event carries the time at which it
 * was posted; its age is taken when it is read. 1 s of warm-up, then 10 s. The figure is the difference of the two medians, so
 * that what else the machine does weighs on both.
 *
 * How it could mislead: loopback has no network. The hub is on core 0; nginx and the reader share core 1 (`taskset`). The hub writes the event to both
 * streams in one turn; when the reader is late, it finds both and the difference shrinks.
 */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { Agent, get, type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { startProgram } from '../test/support/program.ts'
import { shippedConfiguration, startProxy, versionOf } from '../test/support/proxies/proxy.ts'
import { numbersFrom } from './options.ts'
import { canPin, cores, pinnedTo } from './processes/cores.ts'
import { report } from './report.ts'

const { seconds } = numbersFrom({ seconds: 10 })
const perSecond = 100
const barMs = 1

if (canPin()) spawnSync('taskset', ['-cp', String(cores.load), String(process.pid)])
let url = ''
const hub = await startProgram({
  port: 0,
  env: { REJOIN_LOG: 'memory' },
  under: pinnedTo(cores.server),
  onLine(line) {
    url ||= /"url":"([^"]+)"/.exec(line)?.[1] ?? ''
  },
})
const agent = new Agent({ keepAlive: true })
const nginx = await startProxy('nginx', Number(new URL(url).port), shippedConfiguration('nginx'))
const ages = { hub: await readAges(url), nginx: await readAges(nginx.url) }
await publish(1)
for (const each of Object.values(ages)) each.length = 0
await publish(seconds)
await nginx.stop()
agent.destroy()
await hub.stop()

const direct = quantile(ages.hub, 0.5)
const through = quantile(ages.nginx, 0.5)
report({
  bench: 'proxy',
  inputs: { seconds, perSecond, nginx: await versionOf('nginx') },
  figures: [{ what: 'nginx with our configuration adds, p50', value: through - direct, unit: 'ms', atMost: barMs }],
  details: Object.entries(ages).map(([way, found]) => ({
    way: way === 'hub' ? 'from the hub' : 'through nginx',
    samples: found.length,
    'p50 ms': quantile(found, 0.5),
    'p99 ms': quantile(found, 0.99),
  })),
})

async function publish(forSeconds: number): Promise<void> {
  const until = performance.now() + forSeconds * 1000
  while (performance.now() < until) {
    const posting = request(`${url}/publish/timed`, { method: 'POST', agent })
    posting.end(String(performance.now()))
    const [response] = (await once(posting, 'response')) as [IncomingMessage]
    response.resume()
    await sleep(1000 / perSecond)
  }
}

async function readAges(url: string): Promise<number[]> {
  const found: number[] = []
  const stream = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${url}/events/timed`, { agent: false }, (response) => resolve(response.setEncoding('utf8'))).on(
      'error',
      reject,
    )
  })
  stream.on('error', () => undefined)
  stream.on('data', (piece: string) => {
    const now = performance.now()
    for (const [, sentAt] of piece.matchAll(/^data: ([\d.]+)$/gm)) found.push(now - Number(sentAt))
  })
  return found
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other)
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN
}
