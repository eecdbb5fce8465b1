import type { Environment } from '../environment.ts'
import type { Log, LogSource } from '../log/contract.ts'
import { type MemoryLogOptions, memoryLog } from '../log/memory/log.ts'

/**
 * A memory log that outlives its hubs, as a log in a folder or in Redis does, and whose events a test can let expire. It is the
 * memory log of every other hub: only its clock is ahead.
 */
export interface KeptLog extends LogSource {
  /** Everything it holds is now older than its window. Channels whose window has no age keep what they hold. */
  expire(): void
  /** Lets go of the log: the next hub finds an empty one, on a branch that continues nothing. */
  lose(): Promise<void>
}

export function keptLog(options: MemoryLogOptions = {}): KeptLog {
  const source = memoryLog(options)
  let aheadMs = 0
  let kept: { log: Log; close(): Promise<void> } | undefined

  async function openFirst(environment: Environment): Promise<Log> {
    const log = await source.open({ ...environment, now: () => environment.now() + aheadMs })
    const close = log.close.bind(log)
    // The log has to stay open when a hub closes, and go on with its tails as every log does.
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

/** The `hotBytes` of a hub on such a log: what has expired must not be served from the memory of the hub. */
export const coldBytes = 1
