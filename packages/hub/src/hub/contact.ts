import type { RejoinError } from '@rejoin/protocol'
import type { Cancel, Environment } from '../environment.ts'
import type { Log } from '../log/contract.ts'

/** Whether the hub hears from its log. */
export interface Contact {
  readonly isLost: boolean
  stop(): void
}

export interface ContactOptions {
  readonly log: Pick<Log, 'tailSilenceMs' | 'fault'>
  readonly maxSilenceMs: number
  readonly environment: Environment
  /**
   * Called once each time contact is lost.
   *
   * @param cause - the fault that the log reports; undefined when the log is silent
   */
  onLost(cause: RejoinError | undefined): void
}

// A tenth of the default of `maxTailSilenceMs`.
const checkEveryMs = 1000

export function watchContact({ log, maxSilenceMs, environment, onLost }: ContactOptions): Contact {
  let isLost = false
  let cancel: Cancel = log.tailSilenceMs || log.fault ? environment.after(checkEveryMs, checkContact) : () => undefined

  function checkContact(): void {
    const wasLost = isLost
    const cause = log.fault?.()
    isLost = cause !== undefined || (log.tailSilenceMs?.() ?? 0) > maxSilenceMs
    if (isLost && !wasLost) onLost(cause)
    cancel = environment.after(checkEveryMs, checkContact)
  }

  return {
    get isLost() {
      return isLost
    },
    stop: () => cancel(),
  }
}
