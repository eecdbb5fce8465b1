import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'

/**
 * A hub that tells of its readers on standard output, a line of JSON each, with the options of the environment.
 * @param {Record<string, string | undefined>} env
 */
export async function openTalkingHub(env) {
  const window = { maxBytes: 256 * 1024 * 1024, maxEvents: 10_000 }
  const hub = await createHub({ log: memoryLog({ window }), ...JSON.parse(env.REJOIN_HUB_OPTIONS ?? '{}') })
  for (const kind of /** @type {const} */ (['connect', 'close', 'stall'])) {
    hub.on(kind, (observed) => console.log(JSON.stringify({ kind, ...observed })))
  }
  return hub
}
