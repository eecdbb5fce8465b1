/**
 * 1,000 connections cut at random bytes, by RST, by FIN and half-open, with 50 readers and 200 events/s.
 *
 * Half of the readers are our client with its defaults, but for --max-retry; the others come back when they are told to,
 * like a browser. One cut in ten falls into the request, one in five into the head of the answer or into `hello`.
 */

import { startHub } from '../hubs/hub-process.ts'
import { longRun } from '../long-run.ts'
import { runCuts } from '../network/cuts.ts'
import { throughHttp } from '../recorders/recorders.ts'

const heartbeatMs = 1000
const window = { maxEvents: 50_000, maxAgeMs: 600_000 }

await longRun({
  name: 'cuts',
  inputs: { cuts: 1000, readers: 50, rate: 200, bytes: 300_000, 'max-retry': 5000 },
  async run(inputs, history, progress) {
    const { seed, cuts, readers, rate, bytes } = inputs
    const hub = await startHub(history, { heartbeatMs, window })
    history.write({ kind: 'budget', rssBytes: 300 * 1024 * 1024 })
    const client = { maxRetryMs: inputs['max-retry'] }
    // What a client takes that does not know the heartbeat yet, and then has to wait as long as it ever does.
    const catchUpMs = 30_000 + 2 * client.maxRetryMs + 10_000
    await runCuts({
      ...{ history, seed, cuts, readers, window, port: hub.port, pids: [hub.pid] },
      eventsPerSecond: rate,
      send: throughHttp(`http://127.0.0.1:${hub.port}`),
      patience: { client, strict: { silenceMs: 2 * heartbeatMs + 5000 }, catchUpMs },
      maxBytes: bytes,
      earlyHangs: true,
      limitMs: cuts * 3000,
      onProgress(made) {
        if (made % 50 === 0) progress(`${made} of ${cuts} cuts`)
      },
    })
    await hub.stop()
  },
})
