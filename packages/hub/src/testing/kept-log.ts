import type { Environment } from '../environment.ts'
import type { Log, LogSource } from '../log/contract.ts'
import { type MemoryLogOptions, memoryLog } from '../log/memory/log.ts'

/**
 * A memory log that outlives its hubs, as a log in a folder or in Redis does. A test can let its events expire: the log's clock
 * is then set ahead. In all else it is the ordinary memory log.
 */
export interface KeptLog extends LogSource {
  /** Makes all events older than their window. Channels whose window has no age limit keep their events. */
  expire(): void
  /** Drops the log: the next hub opens an empty log, on a branch that continues nothing. */
  lose(): Promise<void>
}

export function keptLog(options: MemoryLogOptions = {}): KeptLog {
  const source = memoryLog(options)
  let aheadMs = 0
  let kept: { log: Log; close(): Promise<void> } | undefined

  async function openFirst(environment: Environment): Promise<Log> {
    const log = await source.open({ ...environment, now: () => environment.now() + aheadMs })
    const close = log.close.bind(log)
    // The log stays open when a hub closes, so that the next hub finds it.
    log.close = async () => undefined
    kept = { log, close }
    return log
  }

  return {
    name: source.name,
    open: async (environment) => kept?.log ?? openFirst(environment),
    expire() {
      const windows = [kept?.log.window, ...Object.values(options.windows ?? {})]
      const ages = windows.map((window) => window?.maxAgeMs ?? 0).filter(Number.isFinite)
      aheadMs += Math.max(...ages) + 1
    },
    async lose() {
      const { close } = kept ?? {}
      kept = undefined
      await close?.()
    },
  }
}

/** The `hotBytes` of a hub on a kept log. So small that the hub serves no expired event from its own memory. */
export const coldBytes = 1
