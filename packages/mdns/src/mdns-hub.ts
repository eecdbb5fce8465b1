import { createHub, type Hub, type HubOptions, uuidv7, type WindowOptions } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { browseUrl } from './service-type.ts'

export interface MdnsHubOptions extends Omit<HubOptions, 'log' | 'snapshotUrl' | 'hotBytes'> {
  /**
   * What is kept of each service type. A reader that was away for longer is told `sync-required`.
   * @defaultValue { maxEvents: 1000, maxAgeMs: 60000 }
   */
  window?: WindowOptions
}

/**
 * A hub for services: in memory, because nobody knows what happened on the network while the program was not there, and with
 * UUIDv7 ids. Who is told of a gap is sent to the browse.
 */
export function createMdnsHub({ window, ...options }: MdnsHubOptions = {}): Promise<Hub> {
  const log = memoryLog({ codec: uuidv7(), window: { maxEvents: 1000, maxAgeMs: 60_000, ...window } })
  // Next to nothing is kept beside the log: who can resume then depends on the window alone.
  return createHub({ ...options, log, snapshotUrl: browseUrl, hotBytes: 1 })
}
