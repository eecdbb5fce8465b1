/**
 * `rejoin serve` killed by SIGKILL every 3 to 8 s, 100 times, on the log that lasts: 100 readers, 500 events/s offered.
 *
 * Publishes that got no answer are sent again under the same key. Each reader has two of 25 channels. With --stored, the
 * log holds so many events before the first kill, which the hub has to open again each time.
 */
import { join } from 'node:path'
import { programWindow } from '../../support/program.ts'
import type { LastingHub } from '../hubs/lasting-hub.ts'
import { formatSpread, longRun } from '../long-run.ts'
import { runKills } from '../process/kills.ts'

// The default, with which the program runs.
const heartbeatMs = 25_000

await longRun({
  name: 'kills',
  inputs: { cycles: 100, readers: 100, rate: 500, stored: 0, 'min-life': 3000, 'max-life': 8000 },
  async run({ seed, cycles, readers, rate, stored, ...lives }, history, progress, folder) {
    const outcome = await runKills({
      ...{ history, seed, cycles, readers, eventsPerSecond: rate },
      betweenMs: [lives['min-life'], lives['max-life']],
      directory: join(folder, 'log'),
      // A reader that comes back too early waits longer before its next try, at most 5 s here. Streams that are cut this often
      // look as if they did not get through, and our client would go on by polls; it is streams that are to be cut here.
      patience: {
        client: { maxRetryMs: 5000, transports: ['fetch'] },
        strict: { silenceMs: 2 * heartbeatMs + 5000 },
        catchUpMs: 15_000,
      },
      prepare: (hub) => storeEvents(hub, stored),
      onProgress(cycle) {
        if (cycle % 10 === 0) progress(`${cycle} of ${cycles} kills`)
      },
    })
    progress(
      `${outcome.acknowledgedPerSecond.toFixed(0)} of ${rate} events/s acknowledged, times without a hub included`,
    )
    progress('from the start of the new process until')
    console.log(`        it listened:                      ${formatSpread(outcome.listeningMs)}`)
    console.log(`        it had acknowledged an event:     ${formatSpread(outcome.acknowledgedMs)}`)
    console.log(`        a reader that was back had one:   ${formatSpread(outcome.receivedMs)}`)
  },
})

/** In batches of a thousand, into channels that nobody reads, each as full as it can be. */
async function storeEvents(hub: LastingHub, count: number): Promise<void> {
  for (let stored = 0; stored < count; stored += 1000) {
    const channel = `archive/${Math.floor(stored / programWindow.maxEvents)}`
    const events = Array.from({ length: 1000 }, (_, index) => ({
      channel,
      text: `${stored + index} ${'x'.repeat(100)}`,
    }))
    const response = await fetch(`${hub.origin}/publish`, { method: 'POST', body: JSON.stringify(events) })
    if (response.status !== 201) throw new Error(`The hub did not store the events: ${await response.text()}`)
    await response.body?.cancel()
  }
}
