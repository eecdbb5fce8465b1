/**
 * Fan-out of an encoded event to 1,000 in-process sinks: what the hub itself costs per reader and turn.
 *
 * Method: a hub on the memory log with 1,000 readers of one channel whose sinks only count bytes. One event of 200 bytes is
 * published per turn; a turn is timed from the publish to the last sink's write, so append, tail, encoding, framing and the
 * walk over the readers are all inside. Processor time of this process, collector included, so that other work on the
 * machine does not count. Median of 7 rounds of 2,000 turns after a warm-up round.
 *
 * How it could mislead: no socket is written, so this is the hub's own part only (a write(2) costs some microseconds);
 * the readers share one subscription, which is the cheapest case.
 */
import { createHub } from '@rejoin/hub'
import type { Session } from '@rejoin/hub/internal'
import { createSubscription } from '@rejoin/hub/internal'
import { memoryLog } from '@rejoin/hub/memory'
import { machine, median, printTable } from './measure.ts'

const readers = 1000
const turns = 2000
const rounds = 7
const barMicroseconds = 0.1

const hub = await createHub({ log: memoryLog(), heartbeatMs: 3_600_000 })
const subscription = createSubscription(['bench'])
const sessions: Session[] = []
let delivered = 0
for (let index = 0; index < readers; index += 1) {
  const sink = {
    write() {
      delivered += 1
      return true
    },
    pending: 0,
    end() {},
    destroy() {},
  }
  sessions.push(
    hub.port.subscribe({ kind: 'admitted', request: { subscription, start: { from: 'now' } } }, sink) as Session,
  )
}
while (sessions.some((session) => session.mode !== 'live')) await new Promise((resolve) => setImmediate(resolve))

const text = JSON.stringify({ payload: 'x'.repeat(150) })
const costs: number[] = []
for (let round = 0; round <= rounds; round += 1) {
  delivered = 0
  const started = process.cpuUsage()
  for (let turn = 0; turn < turns; turn += 1) {
    await hub.publish('bench', { type: 'tick', text })
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { user, system } = process.cpuUsage(started)
  const microseconds = user + system
  if (delivered !== readers * turns) throw new Error(`delivered ${delivered} of ${readers * turns}`)
  if (round > 0) costs.push(microseconds / delivered)
}
await hub.close()

const cost = median(costs)
printTable([
  {
    what: 'per sink and event',
    measured: `${cost.toFixed(4)} µs`,
    bar: `≤ ${barMicroseconds} µs`,
    met: cost <= barMicroseconds,
  },
])
console.log(`${readers} readers, ${turns} turns, median of ${rounds}; ${machine()}`)
process.exitCode = cost <= barMicroseconds ? 0 : 1
