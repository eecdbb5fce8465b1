/**
 * The day of six phones for --minutes: tunnels, lifts, other networks, slow ones and sleep, at 20 events/s.
 *
 * Our client runs with its defaults. Every third phone polls; the others have streams, and may go over to polls.
 */
import { startHub } from '../hubs/hub-process.ts'
import { longRun } from '../long-run.ts'
import { runPhone } from '../network/phone.ts'
import { throughHttp } from '../recorders/recorders.ts'

const window = { maxEvents: 50_000, maxAgeMs: 3_600_000 }

await longRun({
  name: 'phone',
  inputs: { minutes: 20, phones: 6, rate: 20 },
  async run({ seed, minutes, phones, rate }, history, progress) {
    const hub = await startHub(history, { heartbeatMs: 5000, window })
    let episodes = 0
    await runPhone({
      ...{ history, seed, phones, window, port: hub.port, forMs: minutes * 60_000, eventsPerSecond: rate },
      send: throughHttp(`http://127.0.0.1:${hub.port}`),
      client: {},
      // A connection that hangs is known by two heartbeats, and the next attempt may wait as long as any.
      catchUpMs: 90_000,
      onProgress(text) {
        episodes += 1
        if (episodes % 20 === 0) progress(`${episodes} episodes, the last ${text}`)
      },
    })
    await hub.stop()
  },
})
