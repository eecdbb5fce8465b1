import { createRandom } from '@rejoin/hub/testing'
import { type Spread, spreadOf } from '../checker/tally.ts'
import { type CrowdOptions, openCrowd } from '../crowds/crowd.ts'
import { watchedHistory } from '../history/watched.ts'
import { type HubProcessOptions, startHub } from '../hubs/hub-process.ts'
import { openLastingHub } from '../hubs/lasting-hub.ts'
import { throughHttp } from '../recorders/recorders.ts'

/** Stops the hub's process for a while, again and again, as a busy host or a long collection of garbage would. */
export async function runPauses(options: PausesOptions): Promise<PausesOutcome> {
  const { seed, pauses, readers, eventsPerSecond, directory, onProgress } = options
  const noticedMs: number[] = []
  const noticedBy = new Set<string>()
  let pausedAt: number | undefined
  const history = watchedHistory(options.history, (line) => {
    if (line.kind !== 'close' || pausedAt === undefined || noticedBy.has(line.who)) return
    noticedBy.add(line.who)
    noticedMs.push(performance.now() - pausedAt)
  })
  history.write({ kind: 'run', name: 'pauses', seed, inputs: { pauses, readers, eventsPerSecond } })
  const hubOptions = { ...options.hub, window: options.window, directory }
  const hub = await openLastingHub({
    random: createRandom(seed),
    start: (port) => startHub(history, { ...hubOptions, port }),
  })
  try {
    const send = throughHttp(hub.origin, 5000)
    const crowd = openCrowd({ ...options, history, originOf: () => hub.origin, send, resends: 1000, resendAfterMs: 50 })
    await crowd.renewed()
    for (const seconds of pauses) {
      await new Promise((resolve) => setTimeout(resolve, options.betweenMs))
      history.write({ kind: 'fault', what: `stopped for ${seconds} s` })
      hub.running().pause()
      pausedAt = performance.now()
      noticedBy.clear()
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
      hub.running().resume()
      pausedAt = undefined
      history.write({ kind: 'heal' })
      await crowd.renewed()
      onProgress?.(seconds)
    }
    await crowd.finish()
    await hub.stop()
  } finally {
    await hub.abandon()
  }
  return { noticedMs: spreadOf(noticedMs), noticed: noticedMs.length }
}

export interface PausesOptions extends Omit<CrowdOptions, 'originOf' | 'send' | 'resends' | 'resendAfterMs'> {
  readonly seed: number
  /** In seconds, one after the other. */
  readonly pauses: readonly number[]
  /** How long the hub lives before each, at least. */
  readonly betweenMs: number
  readonly directory: string
  readonly hub: HubProcessOptions
  onProgress?(seconds: number): void
}

export interface PausesOutcome {
  /** How long it took those readers that gave up their line while the hub stood still. */
  readonly noticedMs: Spread | undefined
  readonly noticed: number
}
