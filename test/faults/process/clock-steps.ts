import { createRandom } from '@rejoin/hub/testing'
import { type CrowdOptions, openCrowd } from '../crowds/crowd.ts'
import { type HubProcessOptions, startHub } from '../hubs/hub-process.ts'
import { openLastingHub } from '../hubs/lasting-hub.ts'
import { throughHttp } from '../recorders/recorders.ts'

/**
 * Sets the hub's clock to one place after the other: once while it runs, and once while it is down, after a kill. The clock
 * of the history is ours and stays as it is.
 */
export async function runClockSteps(options: ClockStepsOptions): Promise<void> {
  const { history, seed, stepsMs, readers, eventsPerSecond, directory, betweenMs, onProgress } = options
  history.write({ kind: 'run', name: 'clocks', seed, inputs: { stepsMs, readers, eventsPerSecond } })
  const hubOptions = { ...options.hub, window: options.window, directory }
  const hub = await openLastingHub({
    random: createRandom(seed),
    start: (port, aheadMs: number = 0) => startHub(history, { ...hubOptions, port, aheadMs }),
  })
  try {
    const send = throughHttp(hub.origin, 5000)
    const crowd = openCrowd({ ...options, originOf: () => hub.origin, send, resends: 1000, resendAfterMs: 50 })
    await crowd.renewed()
    for (const how of ['running', 'down'] as const) {
      for (const aheadMs of stepsMs) {
        history.write({ kind: 'fault', what: `clock ${aheadMs} ms ahead, set while ${how}` })
        if (how === 'running') {
          hub.running().setClock(aheadMs)
        } else {
          await hub.kill()
          await hub.start(aheadMs)
        }
        history.write({ kind: 'heal' })
        await new Promise((resolve) => setTimeout(resolve, betweenMs))
        await crowd.renewed()
        onProgress?.(`clock ${aheadMs / 1000} s ahead, set while ${how}`)
      }
    }
    await crowd.finish()
    await hub.stop()
  } finally {
    await hub.abandon()
  }
}

export interface ClockStepsOptions extends Omit<CrowdOptions, 'originOf' | 'send' | 'resends' | 'resendAfterMs'> {
  readonly seed: number
  /** How far ahead of ours its clock is put, one after the other. */
  readonly stepsMs: readonly number[]
  /** How long each lasts, at least. */
  readonly betweenMs: number
  readonly directory: string
  readonly hub: HubProcessOptions
  onProgress?(text: string): void
}
