import { createHub, type Hub, type HubOptions, uuidv7, type WindowOptions } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { browseUrl } from './service-type.ts'

export interface MdnsHubOptions extends Omit<HubOptions, 'log' | 'snapshotUrl' | 'hotBytes'> {
  /**
   * How many events are kept of each service type, and for how long. A reader that was away for longer is told
   * `sync-required`.
   * @defaultValue { maxEvents: 1000, maxAgeMs: 60000 }
   */
  window?: WindowOptions | undefined
}

/**
 * A hub for services. Its log is in memory, because nobody knows what happened on the network while the program did not
 * run. Its ids are UUIDs, version 7. A reader that is told of a gap also gets the URL of the browse.
 */
export function createMdnsHub({ window, ...options }: MdnsHubOptions = {}): Promise<Hub> {
  const { maxEvents = 1000, maxAgeMs = 60_000 } = window ?? {}
  const log = memoryLog({ codec: uuidv7(), window: { ...window, maxEvents, maxAgeMs } })
  // The hot window keeps next to nothing, so that the log's window alone decides who can resume.
  return createHub({ ...options, log, snapshotUrl: browseUrl, hotBytes: 1 })
}
