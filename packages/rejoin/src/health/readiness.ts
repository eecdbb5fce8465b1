import type { Hub, LogBudget } from '@rejoin/hub'
import type { Maintenance } from '@rejoin/hub/operations'

/** Whether this hub should be sent readers and events now. */
export interface Readiness {
  /** Asks the log, unless it has just been asked. Never rejects. */
  check(): Promise<ReadinessReport>
  readonly isStopping: boolean
  /** From now on it is not ready: it lets its readers go and will end. */
  stopping(): void
}

export interface ReadinessReport {
  readonly ready: boolean
  /** By what was looked at: `ok`, or what is wrong with it. */
  readonly checks: Readonly<Record<'log' | 'stopping' | 'maintenance', string>>
  /** Why the log fails its check, as the log says it; absent where it passes, and where it does not answer. */
  readonly reason?: string
  /** What the log holds of what it may hold; absent without a budget, and while the log does not say. A full log is ready, too. */
  readonly budget?: LogBudget
}

// Load balancers ask every few seconds and wait for about as long.
const timeoutMs = 2000
// The proof is a write to the disk, and everybody may ask for it.
const believedMs = 1000

/** There is nothing to warm up: a hub listens once its tail is open, and what is not in its memory is read from the log. */
export function createReadiness({ hub, maintenance, now = () => performance.now() }: ReadinessOptions): Readiness {
  let stopping = false
  let probed: Promise<LogCheck> | undefined
  let probedAt = 0

  function logCheck(): Promise<LogCheck> {
    if (!probed || now() - probedAt >= believedMs) {
      probedAt = now()
      probed = checkLog(hub)
    }
    return probed
  }

  return {
    async check() {
      const { log, ...more } = await logCheck()
      const checks = {
        log,
        stopping: stopping ? 'its readers are being let go' : 'ok',
        maintenance: maintenance.isOn ? 'readers are rejected' : 'ok',
      }
      return { ready: Object.values(checks).every((check) => check === 'ok'), checks, ...more }
    },
    get isStopping() {
      return stopping
    },
    stopping() {
      stopping = true
    },
  }
}

export interface ReadinessOptions {
  readonly hub: Probed
  readonly maintenance: Pick<Maintenance, 'isOn'>
  /** Milliseconds on a clock that only goes forward. */
  now?(): number
}

type Probed = Pick<Hub, 'probe'> & { readonly log: Pick<Hub['log'], 'budget'> }

interface LogCheck {
  readonly log: string
  readonly reason?: string
  readonly budget?: LogBudget
}

async function checkLog(hub: Probed): Promise<LogCheck> {
  const found = await probe(hub)
  // That it cannot be asked is said by the probe.
  const budget = found.log === 'ok' ? await hub.log.budget?.().catch(() => undefined) : undefined
  return { ...found, ...(budget && { budget }) }
}

function probe(hub: Pick<Hub, 'probe'>): Promise<LogCheck> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve({ log: `it has not answered within ${timeoutMs} ms` }), timeoutMs)
    void hub
      .probe()
      .then(
        () => resolve({ log: 'ok' }),
        ({ message }: Error) => resolve({ log: 'it cannot take events and hand them out', reason: message }),
      )
      .finally(() => clearTimeout(timer))
  })
}
